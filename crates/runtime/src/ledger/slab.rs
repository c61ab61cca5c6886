//! Entries at places that stay theirs: a vector with a list of free places through it, so that
//! entering and leaving take a few nanoseconds and allocate nothing once warm.

/// The place of an entry; it has one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(u32);

impl Id {
    /// The place as a number; another entry may have it later.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
enum SlabEntry<T> {
    Taken(T),
    Free { next: Option<Id> },
}

/// The entries.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<SlabEntry<T>>,
    free: Option<Id>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: None }
    }

    /// Enters an entry. With 2^32 entries alive the last place would be shared; at 64 bytes each, the
    /// buffers alone would take 256 GiB by then.
    #[inline]
    pub(crate) fn insert(&mut self, entry: T) -> Id {
        if let Some(id) = self.free
            && let Some(place) = self.places.get_mut(id.0 as usize)
            && let SlabEntry::Free { next } = *place
        {
            self.free = next;
            *place = SlabEntry::Taken(entry);
            return id;
        }
        self.places.push(SlabEntry::Taken(entry));
        Id((self.places.len() - 1) as u32)
    }

    /// Ends an entry, after `read` has taken from it what is still wanted: moving it out whole would
    /// take longer than all else here.
    #[inline]
    pub(crate) fn remove<R>(&mut self, id: Id, read: impl FnOnce(&T) -> R) -> Option<R> {
        let place = self.places.get_mut(id.0 as usize)?;
        let SlabEntry::Taken(entry) = place else { return None };
        let read = read(entry);
        *place = SlabEntry::Free { next: self.free };
        self.free = Some(id);
        Some(read)
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        match self.places.get(id.0 as usize)? {
            SlabEntry::Taken(entry) => Some(entry),
            SlabEntry::Free { .. } => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        match self.places.get_mut(id.0 as usize)? {
            SlabEntry::Taken(entry) => Some(entry),
            SlabEntry::Free { .. } => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_with_ids().map(|(_, entry)| entry)
    }

    pub(crate) fn iter_with_ids(&self) -> impl Iterator<Item = (Id, &T)> {
        (0..).map(Id).zip(&self.places).filter_map(|(id, place)| match place {
            SlabEntry::Taken(entry) => Some((id, entry)),
            SlabEntry::Free { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_entries_keep_theirs() {
        let mut slab = Slab::new();
        let ids: Vec<Id> = (0..4).map(|n| slab.insert(n)).collect();
        assert_eq!(slab.remove(ids[1], |n| *n), Some(1));
        assert_eq!(slab.remove(ids[1], |n| *n), None);
        assert_eq!(slab.remove(ids[3], |n| *n), Some(3));
        assert_eq!(slab.insert(30), ids[3]);
        assert_eq!(slab.insert(10), ids[1]);
        assert_eq!(slab.insert(4), Id(4));
        assert_eq!(slab.iter().copied().collect::<Vec<_>>(), [0, 10, 2, 30, 4]);
        *slab.get_mut(ids[0]).unwrap() = 7;
        assert_eq!(slab.remove(ids[0], |n| *n), Some(7));
    }
}
