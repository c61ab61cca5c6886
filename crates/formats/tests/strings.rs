//! Hashes with TensorFlow's values at every length that is hashed in another way, patterns that RE2 reads otherwise than `regex`, and what is refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::strings::Strings;
use tonnage::{DType, tensor};
use tonnage_formats::strings::*;

/// Buckets out of 2^63 - 1 that TensorFlow 2.21 gives: the fast hash, the first one, and the strong one with the key 5 and 2^40 + 1.
#[rustfmt::skip]
const BUCKETS: &[(usize, [i64; 3])] = &[
    (0, [1936946117179621456, 105434511174508092, 2776596826674084112]),
    (1, [4521786392703311244, 7001769250909271135, 3135248755121364787]),
    (2, [1655114877597445365, 5403634426442856619, 4545421969116873051]),
    (3, [4662423180930907492, 5276484929406308779, 8610769155445541020]),
    (4, [8342898540396837779, 5799242685562273649, 5064531919731848063]),
    (7, [5759834791111993764, 1142397842043859391, 1632885727697352628]),
    (8, [907454142650066470, 384654127350334882, 5271275335189502195]),
    (9, [7285966030820982784, 8965977459318072057, 277029639178841003]),
    (16, [9140634717936656744, 5129953047346710616, 7885909455156253832]),
    (17, [5283162056940282152, 7037566801403733717, 3280928820256844809]),
    (24, [3530932784303194834, 8045408115061476468, 4656113802172425922]),
    (32, [2684005117763720425, 1458650421252541103, 2249080065574481982]),
    (33, [4778210889463820522, 2574933530128875931, 90925508636405385]),
    (48, [2844150241367986208, 8924864846615987217, 7425284701854184874]),
    (64, [389040666157116578, 3945209722589307479, 1401162977095935110]),
    (65, [8638051931306504420, 8278743160437407290, 5656248122936616018]),
    (100, [2168416630947060489, 4171434909501331629, 3600556701643668641]),
    (127, [5377748835515186047, 2442093141837005767, 9096560582834333646]),
    (128, [7379187116787024497, 8132594031198021779, 7347549929871036366]),
    (129, [1738507677182238852, 1361456403630484005, 4582206981595521069]),
    (192, [4590343427702585127, 5539149426909079346, 3116733025251033228]),
    (200, [7886090686657605591, 2651614156366774965, 5686838465963570975]),
];

fn only(text: impl AsRef<[u8]>) -> Strings {
    Strings::scalar(text).unwrap()
}

#[test]
fn hashes_are_those_of_tensorflow() {
    for (length, expected) in BUCKETS {
        let text: Vec<u8> = (0..*length).map(|i| (i * 7 + 3) as u8).collect();
        let made = [
            hash_bucket_fast(&only(&text), i64::MAX).unwrap(),
            hash_bucket(&only(&text), i64::MAX).unwrap(),
            hash_bucket_strong(&only(&text), i64::MAX, [5, (1 << 40) + 1]).unwrap(),
        ];
        assert_eq!(made.map(|made| made.scalar::<i64>().unwrap()), *expected, "{length} bytes");
    }
    assert!(hash_bucket(&only("a"), 0).is_err());
}

#[test]
fn patterns_mean_what_they_mean_to_re2() {
    let replaced = |pattern: &str, text: &str| {
        let made = regex_replace(&only(text), &Pattern::new(pattern).unwrap(), b"_", true);
        String::from_utf8_lossy(&made.unwrap().to_vec().unwrap()[0]).into_owned()
    };
    // Classes and boundaries are those of ASCII; `\s` has no vertical tab.
    assert_eq!(replaced(r"\d", "1\u{0661}"), "_\u{0661}");
    assert_eq!(replaced(r"\w", "a\u{e9}"), "_\u{e9}");
    assert_eq!(replaced(r"\s", " \u{b}\u{a0}"), "_\u{b}\u{a0}");
    assert_eq!(replaced(r"\bx", "\u{e9}x"), "\u{e9}_");
    // No operations on sets, and other escapes.
    assert_eq!(replaced(r"[a&&b]", "a&b-"), "___-");
    assert_eq!(replaced(r"[[a]", "[a"), "__");
    assert_eq!(replaced(r"[]a]", "]a"), "__");
    assert_eq!(replaced(r"\Qa.b\E.", "a.bc"), "_");
    assert_eq!(replaced(r"\p{^Latin}", "a\u{3b1}"), "a_");
    assert_eq!(replaced(r"\141\x62\x{63}", "abc"), "_");
    assert_eq!(replaced(r"a{,2}", "a{,2}"), "_");
    assert_eq!(replaced(r"\C", "\u{e9}"), "__");
    assert_eq!(replaced(r"x*", "axb"), "_a_b_");
}

#[test]
fn what_re2_does_not_take_is_an_error() {
    for pattern in [
        "(",
        "a**",
        "[",
        "a{1001}",
        "(?=a)",
        r"\1",
        "(?x)a",
        r"\q",
        "a{2,1}",
        r"\",
        "[b-a]",
        "(?P<n",
        r"\p{Nothing}",
        r"\x{110000}",
        "*",
    ] {
        let error = Pattern::new(pattern).unwrap_err().to_string();
        assert!(error.contains("invalid pattern"), "{pattern}: {error}");
    }
}

#[test]
fn mistakes_are_errors_with_what_to_do() {
    let x = Strings::new(&["a", "bc"], [2]).unwrap();
    let refused = [
        substr(&x, &tensor(5i32).unwrap(), &tensor(1i32).unwrap(), Unit::Byte).err(),
        substr(&x, &tensor([0i32, 1]).unwrap(), &tensor(1i32).unwrap(), Unit::Byte).err(),
        to_number(&x, DType::F32).err(),
        to_number(&x, DType::U8).err(),
        join(&[&x, &Strings::new(&["a"; 3], [3]).unwrap()], b"").err(),
        reduce_join(&x, &[1], b"", false).err(),
        unsorted_segment_join(&x, &tensor([0i32, 2]).unwrap(), 2, b"").err(),
        decode_base64(&x).err(),
        decode_raw(&x, DType::U8, true).err(),
        decode_raw_padded(&x, DType::I16, true, 3).err(),
        unicode_decode(&only([0xff]), "UTF-8", Unicode::default()).err(),
        unicode_decode(&x, "KOI-7", Unicode::default()).err(),
        unicode_transcode(&x, "UTF-8", "UTF-7", Unicode::default()).err(),
        unicode_encode(
            &tensor([0xd800i32]).unwrap(),
            &tensor([0i64, 1]).unwrap(),
            "UTF-8",
            Unicode::default(),
        )
        .err(),
        unicode_encode(
            &tensor([97i32]).unwrap(),
            &tensor([0i64, 2]).unwrap(),
            "UTF-8",
            Unicode::default(),
        )
        .err(),
        ngrams(&x, &tensor([0i64, 1]).unwrap(), &NGrams { widths: vec![1], ..NGrams::default() })
            .err(),
        as_string(&tensor([1i32]).unwrap(), &Print { precision: Some(1), ..Print::default() })
            .err(),
        as_string(&tensor([1i32]).unwrap(), &Print { fill: "x".into(), ..Print::default() }).err(),
        unicode_script(&tensor([1i64]).unwrap()).err(),
    ];
    for (number, error) in refused.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("call {number} should fail")).to_string();
        assert!(error.contains("; "), "{error}");
    }
}
