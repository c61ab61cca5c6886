//! Just enough of the wire format of protocol buffers to write a profile: numbers, texts and messages in fields. A crate for
//! it would bring generated code and a build step for what is a page.

/// A message in the making.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// A number; 0 is what a missing one is.
    pub fn number(&mut self, field: u32, n: u64) -> &mut Message {
        if n != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(n);
        }
        self
    }

    /// Several numbers, packed.
    pub fn numbers(&mut self, field: u32, all: &[u64]) -> &mut Message {
        let mut packed = Message::default();
        all.iter().for_each(|n| packed.varint(*n));
        self.bytes(field, &packed.0)
    }

    /// Bytes of any kind: a text, or a message.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A message inside.
    pub fn message(&mut self, field: u32, inner: &Message) -> &mut Message {
        self.bytes(field, &inner.0)
    }

    /// All of it.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
