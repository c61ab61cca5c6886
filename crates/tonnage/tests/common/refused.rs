//! A call that must be refused: its kind, what its text says, the user's line, and that nothing leaked.

use tonnage::{Tensor, tensor};

/// The error of a call, which must hold these texts and the line of the call, and must have leaked
/// nothing.
#[macro_export]
macro_rules! refused {
    ($call:expr, $kind:pat, $($text:expr),+ $(,)?) => {{
        let before = $crate::common::in_use();
        let first = line!();
        let made = $call;
        let error: tonnage::Error = match made {
            Ok(_) => panic!("line {first}: it worked"),
            Err(error) => error,
        };
        assert_eq!($crate::common::in_use(), before, "leaked: {error}");
        assert!(matches!(error.kind(), $kind), "another kind: {error}");
        let text = error.to_string();
        $(assert!(text.contains($text), "{:?} is not in: {text}", $text);)+
        assert!(text.contains(concat!("(at ", file!(), ":")), "whose line? {text}");
        let line = error.source_line().unwrap().line();
        assert!((first..first + 12).contains(&line), "line {line}, not {first}: {text}");
        assert!(!text.contains('\n'), "one line: {text}");
        error
    }};
}

/// Ones of that shape, in memory.
pub fn floats(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    tensor(vec![1.0f32; count as usize]).unwrap().reshape(shape).unwrap()
}
