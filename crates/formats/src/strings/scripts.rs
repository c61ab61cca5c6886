//! The script that characters belong to, by ICU's numbers.

use std::sync::OnceLock;

use regex_syntax::Parser;
use regex_syntax::hir::{Class, HirKind};
use tonnage::strings::step;
use tonnage::{DType, Result, Tensor, TensorType};
use tonnage_core::error::bad_argument;

/// What is in no script.
const UNKNOWN: i32 = 103;

/// The script of each code point, `i32`, by ICU's number: 25 is Latin, 17 Han, 0 what several scripts have. It is -1 for what is no code point.
///
/// ```
/// use tonnage::tensor;
/// let x = tensor([0x61i32, 0x0431, -1])?;
/// assert_eq!(tonnage_formats::strings::unicode_script(&x)?.to_vec::<i32>()?, [25, 8, -1]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where numbers are not `i32`.
#[track_caller]
pub fn unicode_script(x: &Tensor) -> Result<Tensor> {
    if x.dtype() != DType::I32 {
        let what = format!("code points of {}", x.dtype());
        return Err(bad_argument("unicode_script", what, "give them as i32"));
    }
    let results = [TensorType::new(DType::I32, x.shape())];
    let made = step("unicode_script", &[], &[x], &results, |_, numbers, out| {
        let count: usize = numbers[0].sizes().iter().product();
        for (i, script) in (0..count).zip(out[0].slice::<i32>()) {
            *script = script_of(numbers[0].nth(i).to_i128());
        }
        Ok(())
    })?;
    Ok(made[0].clone())
}

fn script_of(code: i128) -> i32 {
    let Some(code) = u32::try_from(code).ok().filter(|code| *code <= u32::from(char::MAX)) else {
        return -1;
    };
    let ranges = ranges();
    let place = ranges.partition_point(|(_, last, _)| *last < code);
    match ranges.get(place) {
        Some((first, _, script)) if *first <= code => *script,
        _ => UNKNOWN,
    }
}

/// First and last code point of each range that is in one script, in order.
fn ranges() -> &'static [(u32, u32, i32)] {
    static RANGES: OnceLock<Vec<(u32, u32, i32)>> = OnceLock::new();
    RANGES.get_or_init(|| {
        let mut all = Vec::new();
        for (script, name) in SCRIPTS {
            // A script that the library does not know has no characters here.
            let Ok(parsed) = Parser::new().parse(&format!("\\p{{Script={name}}}")) else {
                continue;
            };
            if let HirKind::Class(Class::Unicode(class)) = parsed.kind() {
                let range = |r: &regex_syntax::hir::ClassUnicodeRange| {
                    (u32::from(r.start()), u32::from(r.end()), *script)
                };
                all.extend(class.iter().map(range));
            }
        }
        all.sort_unstable();
        all
    })
}

/// ICU's numbers of scripts.
#[rustfmt::skip]
const SCRIPTS: &[(i32, &str)] = &[
    (0, "Common"), (1, "Inherited"), (2, "Arabic"), (3, "Armenian"), (4, "Bengali"),
    (5, "Bopomofo"), (6, "Cherokee"), (7, "Coptic"), (8, "Cyrillic"), (9, "Deseret"),
    (10, "Devanagari"), (11, "Ethiopic"), (12, "Georgian"), (13, "Gothic"), (14, "Greek"),
    (15, "Gujarati"), (16, "Gurmukhi"), (17, "Han"), (18, "Hangul"), (19, "Hebrew"),
    (20, "Hiragana"), (21, "Kannada"), (22, "Katakana"), (23, "Khmer"), (24, "Lao"), (25, "Latin"),
    (26, "Malayalam"), (27, "Mongolian"), (28, "Myanmar"), (29, "Ogham"), (30, "Old_Italic"),
    (31, "Oriya"), (32, "Runic"), (33, "Sinhala"), (34, "Syriac"), (35, "Tamil"), (36, "Telugu"),
    (37, "Thaana"), (38, "Thai"), (39, "Tibetan"), (40, "Canadian_Aboriginal"), (41, "Yi"),
    (42, "Tagalog"), (43, "Hanunoo"), (44, "Buhid"), (45, "Tagbanwa"), (46, "Braille"),
    (47, "Cypriot"), (48, "Limbu"), (49, "Linear_B"), (50, "Osmanya"), (51, "Shavian"),
    (52, "Tai_Le"), (53, "Ugaritic"), (55, "Buginese"), (56, "Glagolitic"), (57, "Kharoshthi"),
    (58, "Syloti_Nagri"), (59, "New_Tai_Lue"), (60, "Tifinagh"), (61, "Old_Persian"),
    (62, "Balinese"), (63, "Batak"), (65, "Brahmi"), (66, "Cham"), (71, "Egyptian_Hieroglyphs"),
    (75, "Pahawh_Hmong"), (76, "Old_Hungarian"), (78, "Javanese"), (79, "Kayah_Li"), (82, "Lepcha"),
    (83, "Linear_A"), (84, "Mandaic"), (86, "Meroitic_Hieroglyphs"), (87, "Nko"),
    (88, "Old_Turkic"), (89, "Old_Permic"), (90, "Phags_Pa"), (91, "Phoenician"), (92, "Miao"),
    (99, "Vai"), (101, "Cuneiform"), (104, "Carian"), (106, "Tai_Tham"), (107, "Lycian"),
    (108, "Lydian"), (109, "Ol_Chiki"), (110, "Rejang"), (111, "Saurashtra"), (112, "SignWriting"),
    (113, "Sundanese"), (115, "Meetei_Mayek"), (116, "Imperial_Aramaic"), (117, "Avestan"),
    (118, "Chakma"), (120, "Kaithi"), (121, "Manichaean"), (122, "Inscriptional_Pahlavi"),
    (123, "Psalter_Pahlavi"), (125, "Inscriptional_Parthian"), (126, "Samaritan"),
    (127, "Tai_Viet"), (130, "Bamum"), (131, "Lisu"), (133, "Old_South_Arabian"),
    (134, "Bassa_Vah"), (135, "Duployan"), (136, "Elbasan"), (137, "Grantha"),
    (140, "Mende_Kikakui"), (141, "Meroitic_Cursive"), (142, "Old_North_Arabian"),
    (143, "Nabataean"), (144, "Palmyrene"), (145, "Khudawadi"), (146, "Warang_Citi"), (149, "Mro"),
    (150, "Nushu"), (151, "Sharada"), (152, "Sora_Sompeng"), (153, "Takri"), (154, "Tangut"),
    (156, "Anatolian_Hieroglyphs"), (157, "Khojki"), (158, "Tirhuta"), (159, "Caucasian_Albanian"),
    (160, "Mahajani"), (161, "Ahom"), (162, "Hatran"), (163, "Modi"), (164, "Multani"),
    (165, "Pau_Cin_Hau"), (166, "Siddham"), (167, "Adlam"), (168, "Bhaiksuki"), (169, "Marchen"),
    (170, "Newa"), (171, "Osage"), (175, "Masaram_Gondi"), (176, "Soyombo"),
    (177, "Zanabazar_Square"), (178, "Dogra"), (179, "Gunjala_Gondi"), (180, "Makasar"),
    (181, "Medefaidrin"), (182, "Hanifi_Rohingya"), (183, "Sogdian"), (184, "Old_Sogdian"),
    (185, "Elymaic"), (186, "Nyiakeng_Puachue_Hmong"), (187, "Nandinagari"), (188, "Wancho"),
    (189, "Chorasmian"), (190, "Dives_Akuru"), (191, "Khitan_Small_Script"), (192, "Yezidi"),
    (193, "Cypro_Minoan"), (194, "Old_Uyghur"), (195, "Tangsa"), (196, "Toto"), (197, "Vithkuqi"),
    (198, "Kawi"), (199, "Nag_Mundari"), (201, "Garay"), (202, "Gurung_Khema"), (203, "Kirat_Rai"),
    (204, "Ol_Onal"), (205, "Sunuwar"), (206, "Todhri"), (207, "Tulu_Tigalari"),
];
