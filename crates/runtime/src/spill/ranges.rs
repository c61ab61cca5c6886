//! Which ranges of a file are taken.

/// Ranges of a file that grows at its end, and is cut there.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    end: u64,
    /// Those that are free, in order, no two side by side.
    free: Vec<(u64, u64)>,
}

impl Ranges {
    /// Where the last one that is taken ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// A range: the first that is free and large enough, or the end of the file.
    pub fn take(&mut self, len: u64) -> u64 {
        let Some(i) = self.free.iter().position(|(_, free)| *free >= len) else {
            let at = self.end;
            self.end += len;
            return at;
        };
        let (at, free) = self.free[i];
        match free == len {
            true => drop(self.free.remove(i)),
            false => self.free[i] = (at + len, free - len),
        }
        at
    }

    /// Gives a range back; where the file ends now, if it ends earlier than before.
    pub fn give(&mut self, at: u64, len: u64) -> Option<u64> {
        if len == 0 {
            return None;
        }
        let i = self.free.partition_point(|(start, _)| *start < at);
        self.free.insert(i, (at, len));
        for i in [i + 1, i] {
            if i > 0 && i < self.free.len() {
                let (start, before) = self.free[i - 1];
                if start + before == self.free[i].0 {
                    let (_, more) = self.free.remove(i);
                    self.free[i - 1] = (start, before + more);
                }
            }
        }
        let (start, len) = self.free.last().copied()?;
        (start + len == self.end).then(|| {
            self.free.pop();
            self.end = start;
            start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_the_end_moves() {
        let mut ranges = Ranges::default();
        let all: Vec<(u64, u64)> = (1..6).map(|n| (ranges.take(1000 * n), 1000 * n)).collect();
        assert_eq!(ranges.end(), 15_000);
        assert_eq!(ranges.give(all[1].0, all[1].1), None);
        assert_eq!(ranges.give(all[2].0, all[2].1), None);
        assert_eq!(ranges.free, [(1000, 5000)]);
        assert_eq!(ranges.take(4500), 1000);
        assert_eq!(ranges.give(all[0].0, all[0].1), None);
        assert_eq!(ranges.give(all[4].0, all[4].1), Some(10_000));
        assert_eq!(ranges.give(all[3].0, all[3].1), Some(5500));
        assert_eq!(ranges.free, [(0, 1000)]);
        assert_eq!(ranges.give(1000, 4500), Some(0));
        assert_eq!((ranges.free.len(), ranges.end()), (0, 0));
    }

    #[test]
    fn nothing_takes_no_room() {
        let mut ranges = Ranges::default();
        let (first, second) = (ranges.take(0), ranges.take(10));
        assert_eq!((first, second), (0, 0));
        assert_eq!(ranges.give(first, 0), None);
        assert_eq!(ranges.end(), 10);
    }
}
