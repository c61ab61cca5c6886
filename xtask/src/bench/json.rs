//! As much JSON as kept results need: objects, lists, texts and numbers.

use std::fmt;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// Names and values, in the order in which they were written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of that name, of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => {
                fields.iter().find(|(of, _)| of == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The number of that name, of an object.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Json::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of that name, of an object.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What a text says, or where it stops being JSON of this kind.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value()?;
        match reader.next() {
            None => Ok(value),
            Some(_) => Err(reader.wrong("the end")),
        }
    }
}

/// Where a text was read to.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, wanted: &str) -> String {
        format!("not JSON: {wanted} was expected at byte {}", self.at)
    }

    /// The next character that is no blank, not taken yet.
    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// Takes that character, if it is the next one.
    fn takes(&mut self, one: char) -> bool {
        let found = self.next() == Some(one);
        self.at += if found { one.len_utf8() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Json, String> {
        match self.next() {
            Some('"') => self.quoted().map(Json::Text),
            Some('[') => self.all(']', Reader::value).map(Json::List),
            Some('{') => self.all('}', Reader::field).map(Json::Object),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
        let word = &rest[..end.unwrap_or(rest.len())];
        let value: f64 = word.parse().map_err(|_| self.wrong("a value"))?;
        self.at += word.len();
        Ok(Json::Number(value))
    }

    fn field(&mut self) -> Result<(String, Json), String> {
        self.next();
        let name = self.quoted()?;
        if !self.takes(':') {
            return Err(self.wrong("`:`"));
        }
        Ok((name, self.value()?))
    }

    /// What stands between an opening bracket and its closing one, with commas between.
    fn all<T>(
        &mut self,
        close: char,
        one: fn(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.at += 1;
        let mut all = Vec::new();
        if self.takes(close) {
            return Ok(all);
        }
        loop {
            all.push(one(self)?);
            if self.takes(close) {
                return Ok(all);
            }
            if !self.takes(',') {
                return Err(self.wrong("`,` or a closing bracket"));
            }
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.text[self.at..].char_indices();
        if chars.next().is_none_or(|(_, first)| first != '"') {
            return Err(self.wrong("`\"`"));
        }
        while let Some((at, one)) = chars.next() {
            match one {
                '"' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    _ => return Err(self.wrong("`\\\"` or `\\\\` after this")),
                },
                _ => text.push(one),
            }
        }
        Err(self.wrong("the end of a text that begins"))
    }
}

impl fmt::Display for Json {
    /// An element of the outermost lists a line, so that two files can be read side by side.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Number(value) => write!(f, "{value:?}"),
            Json::Text(text) => {
                write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
            Json::List(all) => {
                f.write_str("[")?;
                for (i, one) in all.iter().enumerate() {
                    write!(f, "{}\n{one}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("\n]")
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}\"{name}\": {value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let row = Json::Object(vec![
            ("workload".into(), Json::Text("a \"b\" \\ c".into())),
            ("step".into(), Json::Number(1.25e-7)),
            ("none".into(), Json::List(Vec::new())),
        ]);
        let all = Json::List(vec![row.clone(), Json::Number(-3.0), row]);
        assert_eq!(Json::parse(&all.to_string()).unwrap(), all);
        assert_eq!(Json::parse(" [ 1 ,2e3 ] ").unwrap().to_string(), "[\n1.0,\n2000.0\n]");
    }

    #[test]
    fn what_is_no_json_is_an_error_that_says_where() {
        for (text, at) in [("{\"a\" 1}", 5), ("[1 2]", 3), ("\"a", 0), ("[1] 2", 4), ("", 0)] {
            let error = Json::parse(text).unwrap_err();
            assert!(error.ends_with(&format!("at byte {at}")), "{text}: {error}");
        }
    }
}
