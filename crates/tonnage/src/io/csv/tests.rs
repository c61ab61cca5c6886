//! Tables of any fields, in pieces of any size.

use super::*;

const SIZES: [usize; 6] = [1, 2, 3, 7, 64, 8192];

/// The texts of all rows, with the line that each begins on, read in pieces of `size` bytes.
fn rows(csv: &Csv, text: &[u8], size: usize) -> Result<Vec<(usize, Vec<String>)>> {
    let mut rows = vec![(0, Vec::new())];
    let mut from = BufReader::with_capacity(size, Cursor::new(text));
    csv.fields(&mut from, Path::new("a text"), |field| {
        let at = rows.len() - 1;
        rows[at].0 = field.row;
        rows[at].1.push(field.text.to_string());
        assert_eq!(rows[at].1.len(), field.column);
        if field.last {
            rows.push((0, Vec::new()));
        }
        Ok(true)
    })?;
    assert_eq!(rows.pop(), Some((0, Vec::new())));
    Ok(rows)
}

/// Numbers that look random, and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn field(&mut self) -> String {
        let parts = ["a", "1", "-2.5e3", ",", ";", "\t", "\"", "\n", "\r", "\r\n", " ", "é"];
        (0..self.below(6)).map(|_| self.of(&parts)).collect()
    }

    /// A field as a table shows it: in quotes where it needs them, and sometimes where it does not.
    fn shown(&mut self, field: &str, separator: char) -> String {
        let needs = field.contains([separator, '"', '\n', '\r']) || field.trim() != field;
        if !needs && self.below(3) > 0 {
            return field.to_string();
        }
        let blank = if separator == '\t' { " " } else { "\t" };
        let (before, after) = (self.of(&["", "", " ", blank]), self.of(&["", "", " "]));
        format!("{before}\"{}\"{after}", field.replace('"', "\"\""))
    }
}

#[test]
fn fields_of_any_text_are_read_back() {
    let mut random = Random(1);
    for round in 0..300 {
        let separator = [b',', b';', b'\t', b'|'][random.below(4)];
        let csv = Csv::new().separator(separator);
        let (columns, count) = (1 + random.below(4), 1 + random.below(5));
        let mut want = Vec::new();
        let mut text = random.of(&["", "\u{feff}"]).to_string();
        let mut line = 1;
        for i in 0..count {
            let fields: Vec<String> = (0..columns).map(|_| random.field()).collect();
            let mut shown: Vec<String> =
                fields.iter().map(|field| random.shown(field, separator as char)).collect();
            // A row of nothing at all is an empty line.
            if let [one] = &mut shown[..]
                && one.is_empty()
            {
                *one = "\"\"".to_string();
            }
            want.push((line, fields.iter().map(|field| field.trim().to_string()).collect()));
            let row = shown.join(&(separator as char).to_string());
            let ends = ["\n", "\r\n", "\r", "\n\n", "\r\n \r\n", ""];
            let end = ends[random.below(ends.len() - usize::from(i + 1 < count))];
            let before = text.len();
            text += &row;
            text += end;
            let text = text[before..].replace("\r\n", "\n").replace('\r', "\n");
            line += text.matches('\n').count();
        }
        for size in SIZES {
            let got = rows(&csv, text.as_bytes(), size).unwrap();
            assert_eq!(got, want, "round {round}, pieces of {size}: {text:?}");
        }
    }
}

#[test]
fn names_of_any_text_are_read_back() {
    let path = std::env::temp_dir().join(format!("tonnage-names-{}.csv", std::process::id()));
    let mut random = Random(2);
    for separator in [b',', b';', b'\t'] {
        let csv = Csv::new().separator(separator);
        for columns in 1..6 {
            let names: Vec<String> = (0..columns).map(|_| random.field()).collect();
            let shown: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = crate::make::zeros([2, columns]).unwrap();
            csv.save(&path, &table, &shown).unwrap();
            let trimmed: Vec<&str> = shown.iter().map(|name| name.trim()).collect();
            assert_eq!(csv.names(&path).unwrap(), trimmed);
            let back = csv.header().read(&path).unwrap();
            assert_eq!(back.to_vec::<f32>().unwrap(), vec![0.0; 2 * columns]);
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn numbers_in_quotes_are_numbers() {
    let table = Csv::new().missing(0.0).parse("\"1\",\" 2 \"\r\n \"3\" ,\"\"\r\n5,").unwrap();
    assert_eq!(table.to_vec2::<f32>().unwrap(), [[1.0, 2.0], [3.0, 0.0], [5.0, 0.0]]);
    let table = Csv::new().header().parse("\"a, \"\"b\"\"\nc\"\n1\n").unwrap();
    assert_eq!(table.to_vec2::<f32>().unwrap(), [[1.0]]);
}

#[test]
fn what_is_no_table_says_where() {
    for (text, word) in [
        (&b"1,2\n3,\"4\n5,6\n7,8\n"[..], "line 2, column 2: a quote is never closed"),
        (b"1,2\n3,\"4\"\"", "line 2, column 2: a quote is never closed"),
        (b"\"", "line 1, column 1: a quote is never closed"),
        (b"1\n\"\n\n2\"\n\"3", "line 5, column 1: a quote is never closed"),
        (b"1,2\r3,\"4", "line 2, column 2: a quote is never closed"),
        (b"\"1\"2,3\n", "line 1, column 1: text follows a closing quote"),
        (b"1,2\n3,\"4\" 5\n", "line 2, column 2: text follows a closing quote"),
        (b"1,2\n\"\n3\",4\n5\n", "line 4 has 1 fields"),
        (b"1,2\n3\r4,5\n", "line 2 has 1 fields"),
        (b"1,2\n3,4\n5,\"\n\n6x\"\n", "line 3, column 2"),
        (b"1,2\n\n3,\xff\n", "line 3 is no UTF-8 text"),
    ] {
        for size in SIZES {
            let mut from = BufReader::with_capacity(size, Cursor::new(text));
            let made = Csv::new().table(&mut from, Path::new("a text"), Source::here());
            let error = made.unwrap_err().to_string();
            assert!(error.contains(word), "{:?}: {error}", String::from_utf8_lossy(text));
        }
    }
    for separator in [b'"', b'\n', b'\r', 0xe9] {
        let error = Csv::new().separator(separator).parse("1").unwrap_err().to_string();
        assert!(error.contains("as the separator"), "{error}");
    }
}

#[test]
fn a_field_that_does_not_end_is_not_read_on_and_on() {
    let text = vec![b'1'; MOST_FIELD + 2];
    let error = rows(&Csv::new(), &text, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("line 1, column 1: a field does not end"), "{error}");
}

/// The rows of a file that holds this text.
fn rows_of(text: &str) -> Result<Vec<(usize, Vec<String>)>> {
    let name = format!("tonnage-csv-rows-{}-{:p}.csv", std::process::id(), &text);
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let rows = Csv::new().rows(&path);
    std::fs::remove_file(&path).unwrap();
    Ok(rows?.into_iter().map(|row| (row.line, row.fields)).collect())
}

#[test]
fn rows_of_texts_have_quotes_line_ends_and_byte_order_marks_taken_off() {
    let text = "\u{feff}a,b\r\n\"x, \"\"y\"\"\nz\",2\n \n3,\r\n";
    let wanted = [(1, ["a", "b"]), (2, ["x, \"y\"\nz", "2"]), (5, ["3", ""])];
    assert_eq!(
        rows_of(text).unwrap(),
        wanted.map(|(line, row)| (line, row.map(String::from).to_vec()))
    );
    assert!(rows_of("").unwrap().is_empty() && rows_of("\n\r\n").unwrap().is_empty());
}

#[test]
fn rows_that_a_report_writes_read_back() {
    let mut text = String::new();
    let row = ["plain", "com,ma", "quo\"te", "two\nlines", "", "in between"];
    crate::report::csv_row(&mut text, row);
    assert_eq!(rows_of(&text).unwrap(), [(1, row.map(String::from).to_vec())]);
}

#[test]
fn an_open_quote_names_the_line_where_it_opened() {
    let error = rows_of("a\n\"b\nc\n").unwrap_err().to_string();
    assert!(error.contains("line 2, column 1: a quote is never closed"), "{error}");
}
