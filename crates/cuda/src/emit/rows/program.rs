//! Row programs: what is computed of a row, pass by pass, for each op that has one.
//!
//! A pass goes through the elements of a row: `a`, `b`, ... are those of the operands that are rows, `n` is how many there are, and `C` is
//! what is computed in. An operand with one value a row has its name from the start, and so have the numbers that attributes give; `at` is
//! the element's position in its row.
//!
//! Decision: `docs/decisions/epilogues.md`.

use tonnage_core::Attrs;
use tonnage_core::row::OpDef;
use tonnage_ops::OpId;
use tonnage_ops::nn::norm::how;
use tonnage_ops::nn::softmax::smoothing;

/// What an operand is for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowOperand {
    /// A row that several passes read.
    Held,
    /// A row that one pass reads, or that is the same for all rows.
    Read,
    /// One number a row.
    Number(&'static str),
    /// One position in each row.
    Label(&'static str),
}

impl RowOperand {
    /// Whether it is a row, and not one value for it.
    pub fn is_row(self) -> bool {
        matches!(self, RowOperand::Held | RowOperand::Read)
    }
}

/// A pass, or what stands between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The sum of an expression, by its name.
    Sum(&'static str, &'static str),
    /// The same of `y`, which is an expression that stands for the elements of an operand, by its number, in all passes that follow.
    SumReplaced(&'static str, usize, &'static str, &'static str),
    /// The sum, by its name, of powers of e of `a` less `base`, which is the largest `a`, or 0 where all are minus infinity.
    Powers(&'static str),
    /// The same, where they stand for `a` in all passes that follow.
    PowersReplaced(&'static str),
    /// Statements.
    Let(&'static str),
    /// The elements of the first output.
    Store(&'static str),
    /// The row's number of an output.
    RowResult(usize, &'static str),
    /// The same, in what is computed in.
    WideResult(usize, &'static str),
    /// The element of the first operand at a label, by its name; 0 where that is out of range.
    Pick(&'static str, &'static str),
    /// A number of the row for [`Column`]s, by its position among them.
    Keep(usize, &'static str),
}

/// A sum over rows, for each element of a row: the output that it goes to, and what a row adds to `sum`. An expression may name the operands'
/// elements, and what the passes kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Column {
    pub output: usize,
    pub sum: &'static str,
}

/// A row program.
#[derive(Debug, Clone, PartialEq)]
pub struct RowProgram {
    pub operands: &'static [RowOperand],
    pub passes: &'static [Pass],
    /// Numbers that the attributes give, by name.
    pub numbers: Vec<(&'static str, f64)>,
    /// Sums over rows.
    pub columns: &'static [Column],
    /// The names of what is kept for them.
    pub kept: &'static [&'static str],
}

impl RowProgram {
    /// How often it goes through the elements of a row.
    pub fn passes_over(&self) -> usize {
        let goes = |pass: &&Pass| {
            matches!(pass, Sum(..) | SumReplaced(..) | Powers(_) | PowersReplaced(_) | Store(_))
        };
        self.passes.iter().filter(goes).count()
    }
}

use Pass::{
    Keep, Let, Pick, Powers, PowersReplaced, RowResult, Store, Sum, SumReplaced, WideResult,
};
use RowOperand::{Held, Label, Number, Read};

/// The program of an op, where it has one.
pub fn program(op: &OpDef, attrs: &Attrs) -> Option<RowProgram> {
    let is = |id: OpId| op.id == id as u16;
    let share = || smoothing(op.name, attrs).ok();
    let (operands, passes, numbers): (&[RowOperand], &[Pass], Vec<(&str, f64)>) = match () {
        () if is(OpId::Softmax) => (
            &[Held],
            &[PowersReplaced("sum"), Let("const C part = (C)1 / sum;"), Store("a * part")],
            Vec::new(),
        ),
        () if is(OpId::LogSoftmax) => (
            &[Held],
            &[Powers("sum"), Let("const C log = p_log(sum);"), Store("(a - base) - log")],
            Vec::new(),
        ),
        () if is(OpId::SoftmaxGrad) => {
            (&[Held, Held], &[Sum("sum", "a * b"), Store("b * (a - sum)")], Vec::new())
        }
        () if is(OpId::LogSoftmaxGrad) => {
            (&[Held, Read], &[Sum("sum", "a"), Store("a - p_exp(b) * sum")], Vec::new())
        }
        () if is(OpId::CrossEntropyDense) => (
            &[Held, Read],
            &[
                Powers("powers"),
                Let(
                    "const C log = p_log(powers), certain = (C)1 - share, even = share / (C)(n > 0 ? n : 1);",
                ),
                Sum("loss", "tn::fma(b, certain, even) * (log - (a - base))"),
                RowResult(0, "loss"),
            ],
            vec![("share", share()?)],
        ),
        () if is(OpId::CrossEntropyDenseGrad) => (
            &[Held, Held, Number("g")],
            &[
                PowersReplaced("powers"),
                Sum("targets", "b"),
                Let(
                    "const C certain = (C)1 - share, even = share / (C)(n > 0 ? n : 1), by = g * (targets * certain + share) / powers;",
                ),
                Store("a * by - g * tn::fma(b, certain, even)"),
            ],
            vec![("share", share()?)],
        ),
        () if is(OpId::CrossEntropy) => (
            &[Held, Label("label")],
            match share()? > 0.0 {
                true => &[
                    Powers("powers"),
                    Sum("all", "a - base"),
                    Pick("right", "label"),
                    Let(
                        "const C picked = right - base, mean = all / (C)n, expected = picked + share * (mean - picked);",
                    ),
                    WideResult(0, "p_log(powers) - expected"),
                ],
                false => &[
                    Powers("powers"),
                    Pick("right", "label"),
                    WideResult(0, "p_log(powers) - (right - base)"),
                ],
            },
            vec![("share", share()?)],
        ),
        () if is(OpId::CrossEntropyGrad) => (
            &[Held, Label("label"), Number("g")],
            &[
                PowersReplaced("powers"),
                Let(
                    "const C by = g / powers, less = g * (share / (C)n), picked = g * ((C)1 - share);",
                ),
                Store("tn::fma(a, by, -less) - (at == label ? picked : (C)0)"),
            ],
            vec![("share", share()?)],
        ),
        () if is(OpId::LayerNorm) => {
            let how = how(op.name, attrs).ok()?;
            (
                &[Held, Read, Read],
                match how.centered {
                    true => &[
                        Sum("sum", "a"),
                        Let("const C part = (C)1 / (C)n, mean = sum * part;"),
                        SumReplaced("squares", 0, "a - mean", "y * y"),
                        Let("const C by = (C)1 / p_sqrt(squares * part + epsilon);"),
                        Store("tn::fma(a * by, b, c)"),
                    ],
                    false => &[
                        Sum("squares", "a * a"),
                        Let(
                            "const C part = (C)1 / (C)n, by = (C)1 / p_sqrt(squares * part + epsilon);",
                        ),
                        Store("tn::fma(a * by, b, c)"),
                    ],
                },
                vec![("epsilon", how.epsilon)],
            )
        }
        () if is(OpId::LayerNormGrad) => {
            let how = how(op.name, attrs).ok()?;
            (
                &[Held, Read, Held],
                match how.centered {
                    true => &[
                        Sum("all", "a"),
                        Let("const C part = (C)1 / (C)n, mean = all * part;"),
                        SumReplaced("squares", 0, "a - mean", "y * y"),
                        Let("const C by = (C)1 / p_sqrt(squares * part + epsilon);"),
                        SumReplaced("scaled", 2, "c * b", "y"),
                        Sum("products", "c * a"),
                        Let(
                            "const C even = scaled * part * by, along = products * by * part * by * by;",
                        ),
                        Store("tn::fma(c, by, -tn::fma(a, along, even))"),
                        Keep(0, "mean"),
                        Keep(1, "by"),
                    ],
                    false => &[
                        Sum("squares", "a * a"),
                        Let(
                            "const C part = (C)1 / (C)n, by = (C)1 / p_sqrt(squares * part + epsilon);",
                        ),
                        SumReplaced("scaled", 2, "c * b", "y"),
                        Sum("products", "c * a"),
                        Let("const C along = products * by * part * by * by;"),
                        Store("tn::fma(c, by, -(a * along))"),
                        Keep(0, "(C)0"),
                        Keep(1, "by"),
                    ],
                },
                vec![("epsilon", how.epsilon)],
            )
        }
        () => return None,
    };
    let (columns, kept): (&[Column], &[&str]) = match is(OpId::LayerNormGrad) {
        true => (&NORM_COLUMNS, &["mean", "by"]),
        false => (&[], &[]),
    };
    Some(RowProgram { operands, passes, numbers, columns, kept })
}

/// Whether what lies in order can be added to what an op stores: to a norm, a gradient or a softmax over rows, whose store is the last that
/// they do with a row.
pub fn adds(op: &OpDef) -> bool {
    use OpId::{LayerNorm, LayerNormGrad, LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad};
    let all = [LayerNorm, LayerNormGrad, LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad];
    all.iter().any(|id| op.id == *id as u16)
}

/// The gradients of scale and bias.
const NORM_COLUMNS: [Column; 2] = [
    Column { output: 1, sum: "tn::fma((a - mean) * by, c, sum)" },
    Column { output: 2, sum: "sum + c" },
];
