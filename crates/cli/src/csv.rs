//! Reading tables of comma-separated values, with the line of every mistake.
//!
//! Quoted fields may hold commas, doubled quotes and line breaks (RFC 4180); lines end in LF or CRLF; a byte order
//! mark at the start is dropped. Written by hand: `csv` would bring four crates for what is a page here.

/// A row, and the line of the file that it starts on, counted from one.
pub struct CsvRow {
    /// Where it stands.
    pub line: usize,
    /// Its fields, unquoted.
    pub fields: Vec<String>,
}

/// What is wrong, and on which line.
pub struct Mistake {
    /// Counted from one.
    pub line: usize,
    /// One clause.
    pub what: String,
}

/// Splits a text into rows. Empty lines are no rows.
pub fn read(text: &str) -> Result<Vec<CsvRow>, Mistake> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while chars.peek().is_some() {
        let mut row = CsvRow { line, fields: Vec::new() };
        let mut blank = true;
        loop {
            let mut field = String::new();
            if chars.next_if_eq(&'"').is_some() {
                blank = false;
                loop {
                    match chars.next() {
                        Some('"') if chars.next_if_eq(&'"').is_some() => field.push('"'),
                        Some('"') => break,
                        Some(c) => {
                            line += usize::from(c == '\n');
                            field.push(c);
                        }
                        None => {
                            let what = "a quoted field has no closing quote".to_string();
                            return Err(Mistake { line: row.line, what });
                        }
                    }
                }
            } else {
                while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '\n' | '\r')) {
                    field.push(c);
                }
                blank &= field.trim().is_empty();
            }
            row.fields.push(field);
            // CRLF is one end of line, and so is a lone CR.
            match chars.next() {
                Some(',') => blank = false,
                Some('\r') => {
                    chars.next_if_eq(&'\n');
                    line += 1;
                    break;
                }
                Some('\n') => {
                    line += 1;
                    break;
                }
                None => break,
                Some(c) => {
                    let what = format!("`{c}` follows a closing quote; a comma should");
                    return Err(Mistake { line, what });
                }
            }
        }
        if !blank {
            rows.push(row);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<(usize, Vec<String>)> {
        let rows = read(text).unwrap_or_else(|mistake| panic!("{}", mistake.what));
        rows.into_iter().map(|row| (row.line, row.fields)).collect()
    }

    #[test]
    fn quotes_line_ends_and_byte_order_marks_are_understood() {
        let text = "\u{feff}a,b\r\n\"x, \"\"y\"\"\nz\",2\n\n3,\r\n";
        let want: Vec<(usize, Vec<String>)> =
            [(1, vec!["a", "b"]), (2, vec!["x, \"y\"\nz", "2"]), (5, vec!["3", ""])]
                .map(|(line, row)| (line, row.into_iter().map(String::from).collect()))
                .into();
        assert_eq!(fields(text), want);
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut text = String::new();
        let row = ["plain", "com,ma", "quo\"te", "two\nlines", "", " space"];
        tonnage::report::csv_row(&mut text, row);
        assert_eq!(fields(&text), [(1, row.map(String::from).to_vec())]);
    }

    #[test]
    fn an_open_quote_names_the_line_where_it_opened() {
        let mistake = read("a\n\"b\nc\n").err().map(|mistake| mistake.line);
        assert_eq!(mistake, Some(2));
    }
}
