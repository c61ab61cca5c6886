//! Sums of products, as letters say which axes meet.
//!
//! Operands are taken two at a time: in the order in which what comes of each step is smallest. A pair becomes one
//! product of matrices: the axes that both and the result have are its batch, those that both have alone are summed,
//! the others are its rows and columns. Axes are moved without a copy; a copy is made only where several of them have
//! to become one and do not lie so.

use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Error, Result, Shape, Source};

use crate::tensor::Tensor;

/// The sum of products that a text like `"bij,bjk->bik"` asks for: every letter is an axis, the same letter the same
/// axis, and a letter that the result does not have is summed. `...` stands for axes without a name.
///
/// ```
/// use tonnage::{einsum, ones};
/// let (q, k) = (ones([2, 5, 4, 8])?, ones([2, 7, 4, 8])?);
/// let scores = einsum("bthd,bshd->bhts", &[&q, &k])?;
/// assert_eq!(scores.shape().to_string(), "[2, 4, 5, 7]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn einsum(text: &str, operands: &[&Tensor]) -> Result<Tensor> {
    let source = Source::here();
    let parsed = parse(text, operands).map_err(|e| e.at(source))?;
    let mut left = Vec::new();
    for (tensor, labels) in operands.iter().zip(parsed.inputs) {
        left.push(LabeledTensor { tensor: (*tensor).clone(), labels }.without_repeats()?);
    }
    while left.len() > 1 {
        let (a, b) = cheapest(&left, &parsed.output);
        let second = left.swap_remove(b);
        let first = left.swap_remove(a);
        // What is still asked for: by the result, or by an operand that is left.
        let wanted = |label: &usize| {
            parsed.output.contains(label) || left.iter().any(|o| o.labels.contains(label))
        };
        let first = first.summed(&|l| wanted(l) || second.labels.contains(l))?;
        let second = second.summed(&|l| wanted(l) || first.labels.contains(l))?;
        let out = result_labels(&first.labels, &second.labels, &wanted);
        let (x, y) = (&first.tensor, &second.tensor);
        let tensor = contract(x, &first.labels, y, &second.labels, &out, "einsum", source)?;
        left.push(LabeledTensor { tensor, labels: out });
    }
    let Some(last) = left.pop() else {
        return Err(mistake(text, "no operands", "give one or more").at(source));
    };
    last.summed(&|label| parsed.output.contains(label))?.ordered(&parsed.output)
}

/// Labels are letters, or numbers from 256 on for axes without a name, counted from the last.
struct Parsed {
    inputs: Vec<Vec<usize>>,
    output: Vec<usize>,
}

fn mistake(text: &str, what: impl std::fmt::Display, help: &str) -> Error {
    bad_argument("einsum", format!("{what}, in {text:?}"), help)
}

fn parse(text: &str, operands: &[&Tensor]) -> Result<Parsed> {
    let clean: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match clean.split_once("->") {
        Some((left, right)) => (left.to_string(), Some(right.to_string())),
        None => (clean.clone(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != operands.len() {
        let what = format!("{} terms for {} tensors", terms.len(), operands.len());
        return Err(mistake(text, what, "separate one term for each by commas"));
    }
    let mut inputs = Vec::new();
    let mut nameless = 0;
    for (term, tensor) in terms.iter().zip(operands) {
        let letters = term.replace("...", "").len();
        let rest = tensor.rank().checked_sub(letters);
        let rest = rest.filter(|rest| *rest == 0 || term.contains("..."));
        let Some(rest) = rest else {
            let what = format!("{term:?} for a tensor of shape {}", tensor.shape());
            return Err(mistake(text, what, "name every axis, or let `...` stand for the rest"));
        };
        nameless = nameless.max(rest);
        inputs.push(labels(text, term, rest)?);
    }
    let output = match right {
        Some(right) => labels(text, &right, nameless)?,
        None => implied(&inputs, nameless),
    };
    let known = |label: &usize| inputs.iter().any(|input| input.contains(label));
    let repeated = output.iter().enumerate().any(|(i, l)| output[..i].contains(l));
    if repeated || !output.iter().all(known) {
        let help = "use letters of the operands, each once";
        return Err(mistake(text, "the result has a letter twice, or one of its own", help));
    }
    check_lengths(text, &inputs, operands)?;
    Ok(Parsed { inputs, output })
}

/// Without a result: axes without a name, then the letters that appear once, in the order of the alphabet.
fn implied(inputs: &[Vec<usize>], nameless: usize) -> Vec<usize> {
    let all: Vec<usize> = inputs.iter().flatten().copied().collect();
    let count = |label: usize| all.iter().filter(|l| **l == label).count();
    let letters = (0..256).filter(|label| count(*label) == 1);
    (0..nameless).rev().map(|i| 256 + i).chain(letters).collect()
}

fn labels(text: &str, term: &str, nameless: usize) -> Result<Vec<usize>> {
    let (before, behind) = match term.split_once("...") {
        Some((before, behind)) => (before, Some(behind)),
        None => (term, None),
    };
    let letters = |part: &str| -> Result<Vec<usize>> {
        let letter = |c: char| match c.is_ascii_alphabetic() {
            true => Ok(c as usize),
            false => {
                Err(mistake(text, format!("the sign {c:?}"), "use letters, `,`, `...` and `->`"))
            }
        };
        part.chars().map(letter).collect()
    };
    let mut all = letters(before)?;
    if let Some(behind) = behind {
        all.extend((0..nameless).rev().map(|i| 256 + i));
        all.extend(letters(behind)?);
    }
    Ok(all)
}

/// Whether two lengths are equal, or may turn out to be.
fn fit(a: &Dim, b: &Dim) -> bool {
    a == b || a.depends_on_data() || b.depends_on_data()
}

/// The same letter is the same length; axes without a name may be 1 where others are longer.
fn check_lengths(text: &str, inputs: &[Vec<usize>], operands: &[&Tensor]) -> Result<()> {
    let mut seen: Vec<(usize, Dim)> = Vec::new();
    for (labels, tensor) in inputs.iter().zip(operands) {
        for (label, dim) in labels.iter().zip(tensor.shape().iter()) {
            match seen.iter_mut().find(|(l, _)| l == label) {
                None => seen.push((*label, dim.clone())),
                // Sizes that the data decide are compared as they run.
                Some((_, other)) if fit(other, dim) => {}
                Some((label, other)) if *label >= 256 && other.is(1) => *other = dim.clone(),
                Some((label, _)) if *label >= 256 && dim.is(1) => {}
                Some((label, other)) => {
                    let name = char::from_u32(*label as u32).filter(|_| *label < 256);
                    let name = name.map_or("an axis without a name".to_string(), String::from);
                    let what = format!("{name} is {other} long, and {dim} too");
                    return Err(mistake(text, what, "axes of one letter have one length"));
                }
            }
        }
    }
    Ok(())
}

/// A tensor and the labels of its axes.
struct LabeledTensor {
    tensor: Tensor,
    labels: Vec<usize>,
}

impl LabeledTensor {
    /// A label that stands twice is the diagonal of both axes.
    fn without_repeats(mut self) -> Result<LabeledTensor> {
        loop {
            let repeat = (0..self.labels.len()).find_map(|i| {
                let first = self.labels[..i].iter().position(|l| *l == self.labels[i])?;
                Some((first, i))
            });
            let Some((first, second)) = repeat else { return Ok(self) };
            let label = self.labels[first];
            let rest: Vec<usize> =
                (0..self.labels.len()).filter(|i| *i != first && *i != second).collect();
            let order: Vec<i64> = rest.iter().chain([&first, &second]).map(|i| *i as i64).collect();
            self.tensor = self.tensor.transpose(&order)?.diag_part(0)?;
            self.labels = rest.iter().map(|i| self.labels[*i]).chain([label]).collect();
        }
    }

    /// Summed over the labels that are not in the result.
    fn summed(self, wanted: &dyn Fn(&usize) -> bool) -> Result<LabeledTensor> {
        let axes: Vec<i64> = (0..self.labels.len())
            .filter(|i| !wanted(&self.labels[*i]))
            .map(|i| i as i64)
            .collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let tensor = self.tensor.sum(&axes[..])?;
        Ok(LabeledTensor {
            tensor,
            labels: self.labels.into_iter().filter(|l| wanted(l)).collect(),
        })
    }

    /// With its axes in that order.
    fn ordered(self, labels: &[usize]) -> Result<Tensor> {
        let position =
            |label: &usize| self.labels.iter().position(|l| l == label).unwrap_or(0) as i64;
        let order: Vec<i64> = labels.iter().map(position).collect();
        match order.is_sorted() {
            true => Ok(self.tensor),
            false => self.tensor.transpose(&order),
        }
    }
}

/// Labels of what comes of two operands: shared ones, then those of the first, then those of the second.
fn result_labels(a: &[usize], b: &[usize], wanted: &dyn Fn(&usize) -> bool) -> Vec<usize> {
    let shared = a.iter().filter(|l| b.contains(l) && wanted(l));
    let first = a.iter().filter(|l| !b.contains(l) && wanted(l));
    let second = b.iter().filter(|l| !a.contains(l) && wanted(l));
    shared.chain(first).chain(second).copied().collect()
}

/// The two operands of which the least comes.
fn cheapest(operands: &[LabeledTensor], output: &[usize]) -> (usize, usize) {
    let size = |a: usize, b: usize| -> u128 {
        let (x, y) = (&operands[a], &operands[b]);
        let others = |label: &usize| {
            let rest = operands.iter().enumerate().filter(|(i, _)| *i != a && *i != b);
            output.contains(label) || rest.into_iter().any(|(_, o)| o.labels.contains(label))
        };
        let length = |label: &usize| {
            let of = |o: &LabeledTensor| {
                let axis = o.labels.iter().position(|l| l == label)?;
                Some(o.tensor.shape()[axis].most().unwrap_or(1024) as u128)
            };
            of(x).max(of(y)).unwrap_or(1)
        };
        result_labels(&x.labels, &y.labels, &others).iter().map(length).product()
    };
    let pairs = (0..operands.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    pairs.min_by_key(|(a, b)| size(*a, *b)).unwrap_or((0, 1))
}

/// One product of matrices. Every label of an operand is one of the other's or of the result's.
pub(super) fn contract(
    a: &Tensor,
    a_labels: &[usize],
    b: &Tensor,
    b_labels: &[usize],
    out: &[usize],
    op: &'static str,
    source: Source,
) -> Result<Tensor> {
    let both = |l: &&usize| b_labels.contains(l) && a_labels.contains(l);
    let batch: Vec<usize> = out.iter().filter(both).copied().collect();
    let summed: Vec<usize> =
        a_labels.iter().filter(|l| both(l) && !out.contains(l)).copied().collect();
    let rows: Vec<usize> = a_labels.iter().filter(|l| !b_labels.contains(l)).copied().collect();
    let columns: Vec<usize> = b_labels.iter().filter(|l| !a_labels.contains(l)).copied().collect();
    let dims = |x: &Tensor, labels: &[usize], which: &[usize]| -> Vec<Dim> {
        let shape = x.shape();
        let axis = |l: &usize| labels.iter().position(|other| other == l);
        which.iter().filter_map(|l| Some(shape[axis(l)?].clone())).collect()
    };
    let (left, right) = (dims(a, a_labels, &summed), dims(b, b_labels, &summed));
    if !left.iter().zip(&right).all(|(x, y)| fit(x, y)) {
        let what = format!("the shapes {} and {}", a.shape(), b.shape());
        return Err(bad_argument(op, what, "axes that meet must have one length").at(source));
    }
    let left = grouped(a, a_labels, &batch, &[&rows, &summed])?;
    let right = grouped(b, b_labels, &batch, &[&summed, &columns])?;
    let product = left.matmul(&right)?;
    let (row_dims, column_dims) = (dims(a, a_labels, &rows), dims(b, b_labels, &columns));
    let leading = product.shape();
    let leading = leading[..batch.len()].iter().cloned();
    let shape: Shape = leading.chain(row_dims).chain(column_dims).collect();
    let made = reshaped(&product, shape)?;
    let labels = [batch, rows, columns].concat();
    LabeledTensor { tensor: made, labels }.ordered(out)
}

/// With the batch in front and each group of axes behind it as one.
fn grouped(
    x: &Tensor,
    labels: &[usize],
    batch: &[usize],
    groups: &[&[usize]; 2],
) -> Result<Tensor> {
    let all: Vec<usize> = batch.iter().chain(groups[0]).chain(groups[1]).copied().collect();
    let moved = LabeledTensor { tensor: x.clone(), labels: labels.to_vec() }.ordered(&all)?;
    let shape = moved.shape();
    let (leading, rest) = shape.split_at(batch.len());
    let (first, second) = rest.split_at(groups[0].len());
    let joined = |dims: &[Dim]| dims.iter().fold(Dim::Known(1), |n, d| n.times(d));
    let to: Shape = leading.iter().cloned().chain([joined(first), joined(second)]).collect();
    reshaped(&moved, to)
}

fn reshaped(x: &Tensor, to: Shape) -> Result<Tensor> {
    match x.shape() == to {
        true => Ok(x.clone()),
        false => x.reshape(to),
    }
}
