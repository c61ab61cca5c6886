//! The ops, a file a family. A rule is a function from a node to what it makes; what differs between versions of an op is in its rule, which
//! asks for [`Call::version`].

mod activation;
mod attention;
mod control;
mod conv;
mod detect;
mod fill;
mod index;
mod linalg;
mod linear_attention;
mod loss;
mod math;
mod norm;
mod optimizer;
mod pad;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod sample;
mod scatter;
mod sequence;
mod shape;
mod signal;
mod windows;

use tonnage::Result;

use crate::call::Call;
use crate::value::Value;

/// How a node is run.
pub type Rule = fn(&Call) -> Result<Vec<Value>>;

/// The rule of an op.
pub fn find(domain: &str, op: &str) -> Option<Rule> {
    match domain {
        "" => [
            math::find,
            activation::find,
            reduce::find,
            shape::find,
            index::find,
            scatter::find,
            fill::find,
            pad::find,
            linalg::find,
            conv::find,
            pool::find,
            norm::find,
            resize::find,
            sample::find,
            detect::find,
            quantize::find,
            recurrent::find,
            control::find,
            sequence::find,
            attention::find,
            linear_attention::find,
            loss::find,
            signal::find,
            random::find,
        ]
        .iter()
        .find_map(|family| family(op)),
        "ai.onnx.preview.training" => optimizer::find(op),
        "com.microsoft" => recurrent::find_microsoft(op),
        "ai.onnx.preview" => linear_attention::find_preview(op),
        "ai.onnx.ml" => fill::find_ml(op),
        _ => None,
    }
}

/// Whether an op gives other numbers each time.
pub fn is_random(op: &str) -> bool {
    random::find(op).is_some()
}
