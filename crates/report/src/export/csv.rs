//! Buffers as a table of comma-separated values (RFC 4180), for spreadsheets and data frames.

use crate::picture::Picture;

/// Adds a row to a text, quoting where needed.
pub fn csv_row<'a>(out: &mut String, fields: impl IntoIterator<Item = &'a str>) {
    for (i, field) in fields.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

impl Picture {
    /// A row for each buffer: from when to when, at which address, how much, of whom.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let head = ["from", "to", "address", "bytes", "kind", "what", "line", "layer"];
        csv_row(&mut text, head);
        for bar in &self.bars {
            let Some(owner) = self.owners.get(bar.owner as usize) else { continue };
            let numbers = [bar.from, bar.to, bar.address, bar.bytes].map(|n| n.to_string());
            let line = owner.line.to_string();
            let words = [owner.kind.name(), &owner.what, &line, &owner.layer];
            csv_row(&mut text, numbers.iter().map(String::as_str).chain(words));
        }
        text
    }
}
