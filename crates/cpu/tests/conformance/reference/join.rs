//! Ops that join, cut, pad and repeat, and matrices that are made up.

use tonnage_core::attrs::PadMode;
use tonnage_core::{Attrs, DType, Dim};

use super::{Asked, indices};
use crate::plain::{Answer, Plain};

fn known(dim: &Dim) -> usize {
    dim.known().expect("known")
}

/// A result of that shape, each element by its index.
fn make(dtype: DType, sizes: Vec<usize>, value: impl Fn(&[usize]) -> f64) -> Answer {
    let values = indices(&sizes).iter().map(|index| value(index)).collect();
    Answer::new(dtype, sizes, values)
}

pub fn concat(asked: &Asked) -> Vec<Answer> {
    let Attrs::Join { axis, .. } = *asked.attrs else { panic!("no axis") };
    let first = &asked.inputs[0];
    let mut sizes = first.sizes.clone();
    sizes[axis] = asked.inputs.iter().map(|x| x.sizes[axis]).sum();
    let value = |index: &[usize]| {
        let mut own = index.to_vec();
        for part in asked.inputs {
            if own[axis] < part.sizes[axis] {
                return part.at(&own);
            }
            own[axis] -= part.sizes[axis];
        }
        panic!("an index beyond the last part")
    };
    vec![make(first.dtype, sizes, value)]
}

pub fn stack(asked: &Asked) -> Vec<Answer> {
    let Attrs::Join { axis, parts } = *asked.attrs else { panic!("no axis") };
    let first = &asked.inputs[0];
    let sizes = [&first.sizes[..axis], &[parts], &first.sizes[axis..]].concat();
    let value = |index: &[usize]| {
        asked.inputs[index[axis]].at(&[&index[..axis], &index[axis + 1..]].concat())
    };
    vec![make(first.dtype, sizes, value)]
}

pub fn unstack(asked: &Asked) -> Vec<Answer> {
    let Attrs::Join { axis, parts } = *asked.attrs else { panic!("no axis") };
    let x = &asked.inputs[0];
    let sizes = [&x.sizes[..axis], &x.sizes[axis + 1..]].concat();
    let part = |i: usize| {
        make(x.dtype, sizes.clone(), |index| x.at(&[&index[..axis], &[i], &index[axis..]].concat()))
    };
    (0..parts).map(part).collect()
}

pub fn split(asked: &Asked) -> Vec<Answer> {
    let Attrs::Split { axis, lengths } = asked.attrs else { panic!("no lengths") };
    let x = &asked.inputs[0];
    let mut start = 0;
    let mut all = Vec::new();
    for len in lengths.iter().map(known) {
        let mut sizes = x.sizes.clone();
        sizes[*axis] = len;
        all.push(make(x.dtype, sizes, |index| {
            let mut own = index.to_vec();
            own[*axis] += start;
            x.at(&own)
        }));
        start += len;
    }
    all
}

pub fn expand_dims(asked: &Asked) -> Vec<Answer> {
    let Attrs::Axes(axes) = asked.attrs else { panic!("no axes") };
    let x = &asked.inputs[0];
    let mut sizes = x.sizes.clone();
    axes.iter().for_each(|axis| sizes.insert(*axis, 1));
    vec![Answer::new(x.dtype, sizes, x.values.clone())]
}

pub fn squeeze(asked: &Asked) -> Vec<Answer> {
    let Attrs::Squeeze { axes, .. } = asked.attrs else { panic!("no axes") };
    let x = &asked.inputs[0];
    let mut sizes = x.sizes.clone();
    for axis in axes.iter().rev() {
        sizes.remove(*axis);
    }
    vec![Answer::new(x.dtype, sizes, x.values.clone())]
}

pub fn reverse(asked: &Asked) -> Vec<Answer> {
    let Attrs::Axes(axes) = asked.attrs else { panic!("no axes") };
    let x = &asked.inputs[0];
    let mirrored = |(i, at): (usize, &usize)| match axes.contains(&i) {
        true => x.sizes[i] - 1 - at,
        false => *at,
    };
    vec![make(x.dtype, x.sizes.clone(), |index| {
        x.at(&index.iter().enumerate().map(mirrored).collect::<Vec<_>>())
    })]
}

pub fn bitcast(asked: &Asked) -> Vec<Answer> {
    let Attrs::DType(to) = *asked.attrs else { panic!("no dtype") };
    let x = &asked.inputs[0];
    let bits = |v: f64| match x.dtype {
        DType::F32 => u64::from((v as f32).to_bits()),
        DType::F16 => u64::from(half::f16::from_f64(v).to_bits()),
        DType::BF16 => u64::from(half::bf16::from_f64(v).to_bits()),
        _ => v as i64 as u64,
    };
    let signed = |bits: u64| match to.size() {
        1 => f64::from(bits as i8),
        2 => f64::from(bits as i16),
        4 => f64::from(bits as i32),
        _ => bits as i64 as f64,
    };
    let unsigned = |bits: u64| match to.size() {
        1 => f64::from(bits as u8),
        2 => f64::from(bits as u16),
        _ => f64::from(bits as u32),
    };
    let is_signed = to.class() == tonnage_core::Class::Signed;
    let number = |v: f64| if is_signed { signed(bits(v)) } else { unsigned(bits(v)) };
    vec![Answer::new(to, x.sizes.clone(), x.values.iter().map(|v| number(*v)).collect())]
}

pub fn roll(asked: &Asked) -> Vec<Answer> {
    let Attrs::Roll { axis, shift } = *asked.attrs else { panic!("no shift") };
    let x = &asked.inputs[0];
    vec![make(x.dtype, x.sizes.clone(), |index| {
        let mut from = index.to_vec();
        from[axis] = (from[axis] as i64 - shift).rem_euclid(x.sizes[axis] as i64) as usize;
        x.at(&from)
    })]
}

/// Which element of `n` stands at a position that may lie outside, if any.
fn shown(at: i64, n: i64, padding: PadMode) -> Option<usize> {
    let inside = (0..n).contains(&at);
    let at = match padding {
        _ if inside => at,
        PadMode::Constant(_) => return None,
        PadMode::Reflect => {
            if at < 0 {
                -at
            } else {
                2 * (n - 1) - at
            }
        }
        PadMode::Symmetric => {
            if at < 0 {
                -at - 1
            } else {
                2 * n - 1 - at
            }
        }
    };
    Some(at as usize)
}

pub fn pad(asked: &Asked) -> Vec<Answer> {
    let Attrs::Pad { widths, padding } = asked.attrs else { panic!("no widths") };
    let x = &asked.inputs[0];
    let sizes = x.sizes.iter().zip(widths).map(|(n, w)| n + w[0] + w[1]).collect();
    vec![make(x.dtype, sizes, |index| {
        let place = |(i, at): (usize, &usize)| {
            shown(*at as i64 - widths[i][0] as i64, x.sizes[i] as i64, *padding)
        };
        match (index.iter().enumerate().map(place).collect::<Option<Vec<_>>>(), padding) {
            (Some(own), _) => x.at(&own),
            (None, PadMode::Constant(value)) => value.to_f64(),
            (None, _) => panic!("a mirror shows an element"),
        }
    })]
}

pub fn fold_padding(asked: &Asked) -> Vec<Answer> {
    let Attrs::Pad { widths, padding } = asked.attrs else { panic!("no widths") };
    let x = &asked.inputs[0];
    let sizes: Vec<usize> = x.sizes.iter().zip(widths).map(|(n, w)| n - w[0] - w[1]).collect();
    let mut sums = Plain::new(x.dtype, sizes.clone(), vec![0.0; sizes.iter().product()]);
    let mut scale = sums.values.clone();
    for index in indices(&x.sizes) {
        let place = |(i, at): (usize, &usize)| {
            shown(*at as i64 - widths[i][0] as i64, sizes[i] as i64, *padding).expect("shown")
        };
        let own: Vec<usize> = index.iter().enumerate().map(place).collect();
        let flat = own.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i);
        sums.values[flat] += x.at(&index);
        scale[flat] += x.at(&index).abs();
    }
    vec![Answer::scaled(x.dtype, sizes, sums.values, scale)]
}

pub fn one_hot(asked: &Asked) -> Vec<Answer> {
    let Attrs::OneHot { depth, on, off, dtype } = asked.attrs else { panic!("no depth") };
    let x = &asked.inputs[0];
    let sizes = [&x.sizes[..], &[known(depth)]].concat();
    vec![make(*dtype, sizes, |index| {
        let (position, outer) = index.split_last().expect("an axis");
        if x.at(outer) == *position as f64 { on.to_f64() } else { off.to_f64() }
    })]
}

pub fn tile(asked: &Asked) -> Vec<Answer> {
    let Attrs::Repeats(counts) = asked.attrs else { panic!("no counts") };
    let x = &asked.inputs[0];
    let sizes = x.sizes.iter().zip(counts).map(|(n, count)| n * count).collect();
    vec![make(x.dtype, sizes, |index| {
        x.at(&index.iter().zip(&x.sizes).map(|(i, n)| i % n).collect::<Vec<_>>())
    })]
}

pub fn repeat(asked: &Asked) -> Vec<Answer> {
    let Attrs::Repeat { axis, count } = *asked.attrs else { panic!("no count") };
    let x = &asked.inputs[0];
    let mut sizes = x.sizes.clone();
    sizes[axis] *= count;
    vec![make(x.dtype, sizes, |index| {
        let mut from = index.to_vec();
        from[axis] /= count;
        x.at(&from)
    })]
}

pub fn eye(asked: &Asked) -> Vec<Answer> {
    let Attrs::Eye { rows, columns, diagonal, dtype } = asked.attrs else { panic!("no matrix") };
    let on = |index: &[usize]| index[1] as i64 - index[0] as i64 == *diagonal;
    vec![make(*dtype, vec![known(rows), known(columns)], |index| f64::from(on(index)))]
}

pub fn linspace(asked: &Asked) -> Vec<Answer> {
    let Attrs::Linspace { start, stop, len, dtype } = asked.attrs else { panic!("no ends") };
    let (start, stop, n) = (start.to_f64(), stop.to_f64(), known(len));
    let value = |index: &[usize]| match n {
        1 => start,
        _ => start + (stop - start) * index[0] as f64 / (n - 1) as f64,
    };
    let mut made = make(*dtype, vec![n], value);
    made.scale = vec![start.abs().max(stop.abs()); n];
    vec![made]
}

pub fn diag(asked: &Asked) -> Vec<Answer> {
    let Attrs::Diag { rows, columns, diagonal } = asked.attrs else { panic!("no diagonal") };
    let x = &asked.inputs[0];
    let outer = x.sizes.len() - 1;
    let sizes = [&x.sizes[..outer], &[known(rows), known(columns)]].concat();
    vec![make(x.dtype, sizes, |index| {
        let (row, column) = (index[outer] as i64, index[outer + 1] as i64);
        match column - row == *diagonal {
            true => x.at(&[&index[..outer], &[row.min(column) as usize]].concat()),
            false => 0.0,
        }
    })]
}

pub fn diag_part(asked: &Asked) -> Vec<Answer> {
    let Attrs::Diagonal(diagonal) = *asked.attrs else { panic!("no diagonal") };
    let x = &asked.inputs[0];
    let outer = x.sizes.len() - 2;
    let (rows, columns) = (x.sizes[outer] as i64, x.sizes[outer + 1] as i64);
    let length = (0..rows).filter(|r| (0..columns).contains(&(r + diagonal))).count();
    let sizes = [&x.sizes[..outer], &[length]].concat();
    vec![make(x.dtype, sizes, |index| {
        let at = index[outer] as i64;
        let (row, column) = (at - diagonal.min(0), at + diagonal.max(0));
        x.at(&[&index[..outer], &[row as usize, column as usize]].concat())
    })]
}

pub fn lengths(asked: &Asked) -> Vec<Answer> {
    let Attrs::Lengths { of, dtype } = asked.attrs else { panic!("no lengths") };
    let values: Vec<f64> = of.iter().map(|d| known(d) as f64).collect();
    vec![Answer::new(*dtype, vec![values.len()], values)]
}
