//! The last digits of a polynomial's last coefficients change a result once in millions: results alone do not hold them. So the
//! constants of the CPU's functions are looked up in the headers, by value.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tonnage_cuda::headers;

/// The decimal fractions of a text with more than four digits, as bits of an `f64`; without their signs.
fn fractions(text: &str) -> BTreeSet<u64> {
    // What a number may consist of, and a sign after `e`.
    let mut words = vec![String::new()];
    let mut last = ' ';
    for letter in text.chars() {
        let exponent = matches!(letter, '+' | '-') && last == 'e';
        match letter {
            '_' => {}
            _ if letter.is_ascii_alphanumeric() || letter == '.' || exponent => {
                words.last_mut().unwrap().push(letter);
            }
            _ => words.push(String::new()),
        }
        last = letter;
    }
    let numbers = words.iter().filter_map(|word| {
        let digits = word.split('e').next()?.chars().filter(char::is_ascii_digit).count();
        let plain = if word.starts_with("0x") { word } else { word.trim_end_matches('f') };
        (plain.contains('.') && digits > 4).then(|| plain.parse::<f64>().ok()).flatten()
    });
    numbers.map(f64::to_bits).collect()
}

#[test]
fn every_constant_of_the_cpu_stands_in_the_headers() {
    let headers = headers::all().flat_map(|(_, text)| fractions(text)).collect::<BTreeSet<_>>();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simd/src/float");
    let mut found = 0;
    let mut missing = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let constants = fractions(&fs::read_to_string(&path).unwrap());
        found += constants.len();
        let lost = constants.difference(&headers).map(|&bits| f64::from_bits(bits));
        missing.extend(lost.map(|x| format!("{}: {x}", path.display())));
    }
    assert!(found > 250, "{found}");
    assert!(missing.is_empty(), "{} are missing:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn fractions_are_found_in_both_languages() {
    let of = |text| fractions(text).into_iter().map(f64::from_bits).collect::<Vec<_>>();
    assert_eq!(of("x(-0.000_198_4f, 2.7249864e-6f)"), [2.7249864e-6, 0.0001984]);
    assert_eq!(of("const A: f64 = 0.5; const B: f64 = 1_209_600.0;"), [1_209_600.0]);
}
