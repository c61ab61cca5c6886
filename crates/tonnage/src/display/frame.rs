//! Words set in brackets: one line for each row, wrapped where it is too long, and an empty line more
//! between the blocks of each further axis.

use super::PrintOptions;

/// What stands for the elements that are not shown.
const GAP: &str = "...";

/// Sets words, in logical order, as a tensor of these sizes. An axis that is `cut` has a gap after its
/// first `edge` elements.
pub(super) fn frame(
    words: &[String],
    sizes: &[usize],
    cut: &[bool],
    options: PrintOptions,
) -> String {
    let mut frame = TextFrame { words: words.iter(), sizes, cut, options, text: String::new() };
    frame.axis(0);
    frame.text
}

struct TextFrame<'a> {
    words: std::slice::Iter<'a, String>,
    sizes: &'a [usize],
    cut: &'a [bool],
    options: PrintOptions,
    text: String,
}

impl TextFrame<'_> {
    fn axis(&mut self, axis: usize) {
        let inner = self.sizes.len().saturating_sub(axis + 1);
        let Some(len) = self.sizes.get(axis) else {
            let word = self.words.next().map_or("", String::as_str);
            return self.text.push_str(word.trim());
        };
        self.text.push('[');
        if inner == 0 {
            self.row(*len, axis + 1);
        } else {
            for i in 0..*len {
                if i > 0 {
                    self.new_line(inner, axis + 1);
                }
                if self.has_gap(axis, i) {
                    self.text.push_str(GAP);
                    self.new_line(inner, axis + 1);
                }
                self.axis(axis + 1);
            }
        }
        self.text.push(']');
    }

    /// The words of one row, `indent` columns from the left. All brackets that close must still fit on
    /// the line; a word that is longer than a line stands alone on one.
    fn row(&mut self, len: usize, indent: usize) {
        let most = self.options.width.saturating_sub(indent);
        let mut column = indent;
        for i in 0..len {
            let gap = self.has_gap(indent - 1, i).then_some(GAP);
            let word = self.words.next().map(String::as_str);
            for (j, word) in gap.into_iter().chain(word).enumerate() {
                if i + j > 0 {
                    self.text.push(' ');
                    column += 1;
                }
                if column + word.len() > most && column > indent {
                    self.new_line(1, indent);
                    column = indent;
                }
                self.text.push_str(word);
                column += word.len();
            }
        }
    }

    fn has_gap(&self, axis: usize, before: usize) -> bool {
        self.cut[axis] && before == self.options.edge
    }

    fn new_line(&mut self, lines: usize, indent: usize) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.extend(std::iter::repeat_n('\n', lines));
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}
