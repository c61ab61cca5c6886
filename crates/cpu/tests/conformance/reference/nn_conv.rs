//! Convolutions, from one list of what meets what: a pixel's channel, a tap's weight, a window's channel.

use tonnage_core::Attrs;
use tonnage_core::window::Conv;

use super::nn_window::{counts, place};
use super::{Asked, indices};
use crate::plain::{Answer, Plain};

fn conv<'a>(asked: &'a Asked) -> &'a Conv {
    let Attrs::Conv(conv) = asked.attrs else { panic!("no convolution") };
    conv
}

/// A product that is added up: where its factors lie in image, filters and result.
struct Term {
    image: Vec<usize>,
    filter: Vec<usize>,
    made: Vec<usize>,
}

/// Every product of a convolution, by the sizes of image and filters.
fn terms(conv: &Conv, image: &[usize], filter: &[usize]) -> Vec<Term> {
    let axes = conv.window.size.len();
    let (inner, outputs) = (filter[axes], filter[axes + 1]);
    let mut all = Vec::new();
    for batch in 0..image[0] {
        for at in indices(&counts(&conv.window, image)) {
            for tap in indices(&filter[..axes]) {
                let Some(place) = place(&conv.window, image, &at, &tap) else { continue };
                for (c, o) in (0..inner).flat_map(|c| (0..outputs).map(move |o| (c, o))) {
                    let group = o / (outputs / conv.groups);
                    all.push(Term {
                        image: [&[batch], &place[..], &[group * inner + c]].concat(),
                        filter: [&tap[..], &[c, o]].concat(),
                        made: [&[batch], &at[..], &[o]].concat(),
                    });
                }
            }
        }
    }
    all
}

/// Adds up products.
fn sums<'t>(
    dtype: tonnage_core::DType,
    sizes: Vec<usize>,
    terms: impl Iterator<Item = (&'t Vec<usize>, f64)>,
) -> Vec<Answer> {
    let count = sizes.iter().product();
    let (mut values, mut scale) = (vec![0.0; count], vec![0.0; count]);
    for (index, product) in terms {
        let at = index.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i);
        values[at] += product;
        scale[at] += product.abs();
    }
    vec![Answer::scaled(dtype, sizes, values, scale)]
}

fn last(x: &Plain) -> usize {
    *x.sizes.last().expect("channels")
}

pub fn forward(asked: &Asked) -> Vec<Answer> {
    let [image, filter] = asked.inputs else { panic!("two inputs") };
    let conv = conv(asked);
    let made = counts(&conv.window, &image.sizes);
    let sizes = [&image.sizes[..1], &made[..], &[last(filter)]].concat();
    let terms = terms(conv, &image.sizes, &filter.sizes);
    let products = terms.iter().map(|t| (&t.made, image.at(&t.image) * filter.at(&t.filter)));
    sums(image.dtype, sizes, products)
}

pub fn transpose(asked: &Asked) -> Vec<Answer> {
    let [values, filter] = asked.inputs else { panic!("two inputs") };
    let conv = conv(asked);
    let lengths = conv.image.sizes().expect("known").to_vec();
    let channels = filter.sizes[lengths.len()] * conv.groups;
    let sizes = [&values.sizes[..1], &lengths[..], &[channels]].concat();
    let terms = terms(conv, &sizes, &filter.sizes);
    let products = terms.iter().map(|t| (&t.image, values.at(&t.made) * filter.at(&t.filter)));
    sums(values.dtype, sizes.clone(), products)
}

pub fn filter_grad(asked: &Asked) -> Vec<Answer> {
    let [image, values] = asked.inputs else { panic!("two inputs") };
    let conv = conv(asked);
    let inner = last(image) / conv.groups;
    let sizes = [&conv.window.size[..], &[inner, last(values)]].concat();
    let terms = terms(conv, &image.sizes, &sizes);
    let products = terms.iter().map(|t| (&t.filter, image.at(&t.image) * values.at(&t.made)));
    sums(image.dtype, sizes.clone(), products)
}
