//! A heap profile as `pprof` reads it: a gzipped protocol buffer of the published `profile.proto`, with the four
//! figures that heap profiles have: obtained in all, by number and by bytes, and in use, which is what lives at the
//! peak.
//!
//! A stack is the layer, from the outside in, and then the op at its line.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::proto::Message;
use crate::picture::{Along, Picture};

/// Texts by number; the first is empty, as the format wants it.
struct Texts {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Texts {
    fn new() -> Texts {
        Texts { all: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_string());
        self.numbers.insert(text.to_string(), number);
        number
    }
}

/// Places in the program, each a function of its own.
#[derive(Default)]
struct Locations {
    numbers: HashMap<(String, String, u32), u64>,
    functions: Vec<Message>,
    locations: Vec<Message>,
}

impl Locations {
    fn number(&mut self, name: &str, file: &str, line: u32, texts: &mut Texts) -> u64 {
        let next = self.numbers.len() as u64 + 1;
        let key = (name.to_string(), file.to_string(), line);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let mut function = Message::default();
            function.number(1, number).number(2, texts.number(name)).number(3, texts.number(name));
            function.number(4, texts.number(file)).number(5, u64::from(line));
            let mut at = Message::default();
            at.number(1, number).number(2, u64::from(line));
            let mut location = Message::default();
            location.number(1, number).message(4, &at);
            self.functions.push(function);
            self.locations.push(location);
        }
        number
    }
}

impl Picture {
    /// The picture as a gzipped profile: `pprof -sample_index=inuse_space file`.
    pub fn pprof(&self) -> Vec<u8> {
        let (mut texts, mut places) = (Texts::new(), Locations::default());
        // By owner: obtained in all, and what lives at the peak.
        let mut sums = vec![[0u64; 4]; self.owners.len()];
        let at = self.peak.at;
        for bar in &self.bars {
            let Some(sum) = sums.get_mut(bar.owner as usize) else { continue };
            let alive = u64::from(bar.from <= at && at < bar.to);
            let more = [1, bar.bytes, alive, alive * bar.bytes];
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        let mut profile = Message::default();
        for (what, unit) in [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ] {
            let mut kind = Message::default();
            kind.number(1, texts.number(what)).number(2, texts.number(unit));
            profile.message(1, &kind);
        }
        let kind_key = texts.number("kind");
        for (owner, sums) in self.owners.iter().zip(&sums) {
            let mut stack =
                vec![places.number(&owner.what, owner.line.file(), owner.line.line(), &mut texts)];
            // The innermost comes first.
            let parts = owner.layer.split('/').filter(|part| !part.is_empty());
            let parts: Vec<&str> = parts.collect();
            stack.extend(parts.iter().rev().map(|part| places.number(part, "", 0, &mut texts)));
            let mut label = Message::default();
            label.number(1, kind_key).number(2, texts.number(owner.kind.name()));
            let mut sample = Message::default();
            sample.numbers(1, &stack).numbers(2, sums).message(3, &label);
            profile.message(2, &sample);
        }
        places.locations.iter().for_each(|place| {
            profile.message(4, place);
        });
        places.functions.iter().for_each(|function| {
            profile.message(5, function);
        });
        let (inuse, title) = (texts.number("inuse_space"), texts.number(&self.title));
        texts.all.iter().for_each(|text| {
            profile.bytes(6, text.as_bytes());
        });
        if self.along == Along::Nanoseconds {
            profile.number(10, self.length);
        }
        profile.numbers(13, &[title]).number(14, inuse);
        let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to a vector cannot fail.
        let _ = zipped.write_all(&profile.into_bytes());
        zipped.finish().unwrap_or_default()
    }
}
