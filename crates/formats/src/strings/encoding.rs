//! How code points lie in bytes.

use tonnage::Result;
use tonnage::strings::Sink;
use tonnage_core::error::bad_argument;

/// An encoding of Unicode, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// Two bytes or four; the lowest first if it is true.
    Utf16(bool),
    /// Four bytes; the lowest first if it is true.
    Utf32(bool),
    /// A byte each, of the first 256 code points.
    Latin1,
    /// A byte each, of the first 128.
    Ascii,
}

impl Encoding {
    /// The encoding of that name.
    pub fn of(op: &'static str, name: &str) -> Result<Encoding> {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        Ok(match plain.as_str() {
            "utf8" => Encoding::Utf8,
            "utf16" | "utf16be" => Encoding::Utf16(false),
            "utf16le" => Encoding::Utf16(true),
            "utf32" | "utf32be" => Encoding::Utf32(false),
            "utf32le" => Encoding::Utf32(true),
            "latin1" | "iso88591" => Encoding::Latin1,
            "ascii" | "usascii" => Encoding::Ascii,
            _ => {
                let what = format!("could not create a converter for the encoding {name:?}");
                let help = "use UTF-8, UTF-16, UTF-32, ISO-8859-1 or US-ASCII";
                return Err(bad_argument(op, what, help));
            }
        })
    }

    /// Calls `visit` with each character, or `None` for what is none, and where it begins.
    pub fn decode(
        self,
        text: &[u8],
        visit: &mut dyn FnMut(Option<char>, usize) -> Result<()>,
    ) -> Result<()> {
        match self {
            Encoding::Utf8 => {
                let mut at = 0;
                for chunk in text.utf8_chunks() {
                    for (place, character) in chunk.valid().char_indices() {
                        visit(Some(character), at + place)?;
                    }
                    at += chunk.valid().len();
                    if !chunk.invalid().is_empty() {
                        visit(None, at)?;
                    }
                    at += chunk.invalid().len();
                }
                Ok(())
            }
            Encoding::Utf16(little) => {
                let (pairs, rest) = text.as_chunks::<2>();
                let unit = |pair: &[u8; 2]| match little {
                    true => u16::from_le_bytes(*pair),
                    false => u16::from_be_bytes(*pair),
                };
                let mut at = 0;
                for character in char::decode_utf16(pairs.iter().map(unit)) {
                    visit(character.as_ref().ok().copied(), at)?;
                    at += 2 * character.map_or(1, char::len_utf16);
                }
                if rest.is_empty() { Ok(()) } else { visit(None, at) }
            }
            Encoding::Utf32(little) => {
                let (fours, rest) = text.as_chunks::<4>();
                for (number, four) in fours.iter().enumerate() {
                    let code = match little {
                        true => u32::from_le_bytes(*four),
                        false => u32::from_be_bytes(*four),
                    };
                    visit(char::from_u32(code), 4 * number)?;
                }
                if rest.is_empty() { Ok(()) } else { visit(None, text.len() - rest.len()) }
            }
            Encoding::Latin1 => text
                .iter()
                .enumerate()
                .try_for_each(|(at, byte)| visit(Some(char::from(*byte)), at)),
            Encoding::Ascii => text
                .iter()
                .enumerate()
                .try_for_each(|(at, byte)| visit(byte.is_ascii().then(|| char::from(*byte)), at)),
        }
    }

    /// Writes a character. Only encodings that have all are written.
    pub fn encode(self, character: char, sink: &mut Sink) {
        match self {
            Encoding::Utf16(little) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    sink.push(&if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                }
            }
            Encoding::Utf32(little) => {
                let code = u32::from(character);
                sink.push(&if little { code.to_le_bytes() } else { code.to_be_bytes() });
            }
            Encoding::Utf8 | Encoding::Latin1 | Encoding::Ascii => sink.push_char(character),
        }
    }

    /// One that is written.
    pub fn of_output(op: &'static str, name: &str) -> Result<Encoding> {
        match name {
            "UTF-8" => Ok(Encoding::Utf8),
            "UTF-16-BE" => Ok(Encoding::Utf16(false)),
            "UTF-32-BE" => Ok(Encoding::Utf32(false)),
            _ => {
                let what = format!("the encoding {name:?} of the result");
                Err(bad_argument(op, what, "use UTF-8, UTF-16-BE or UTF-32-BE"))
            }
        }
    }
}
