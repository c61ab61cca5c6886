//! Windows over images: pooling.

use tonnage_core::Attrs;
use tonnage_core::window::{Average, Between, Resize, Window};

use super::{Asked, indices};
use crate::plain::Answer;

/// How many windows an image of these sizes has along its spatial axes.
pub fn counts(window: &Window, image: &[usize]) -> Vec<usize> {
    let count = |d: usize| {
        let reach = (window.size[d] - 1) * window.dilation[d] + 1;
        let padded = image[d + 1] + window.padding[d][0] + window.padding[d][1];
        (padded - reach) / window.stride[d] + 1
    };
    (0..window.size.len()).map(count).collect()
}

/// Where a tap of a window lies in an image of these sizes, if it does.
pub fn place(window: &Window, image: &[usize], at: &[usize], tap: &[usize]) -> Option<Vec<usize>> {
    let along = |d: usize| {
        let padded = at[d] * window.stride[d] + tap[d] * window.dilation[d];
        padded.checked_sub(window.padding[d][0]).filter(|i| *i < image[d + 1])
    };
    (0..window.size.len()).map(along).collect()
}

/// Batch, place and channel of an element.
pub fn parts(index: &[usize]) -> (usize, &[usize], usize) {
    (index[0], &index[1..index.len() - 1], index[index.len() - 1])
}

fn window<'a>(asked: &'a Asked) -> &'a Window {
    let Attrs::Window(window) = asked.attrs else { panic!("no window") };
    window
}

/// The elements of a window, padding included, row by row: where each lies in the image, if it does.
fn elements(window: &Window, image: &[usize], index: &[usize]) -> Vec<Option<Vec<usize>>> {
    let (batch, at, channel) = parts(index);
    let taps = indices(&window.size);
    let whole = |place: Vec<usize>| [&[batch], &place[..], &[channel]].concat();
    taps.iter().map(|tap| place(window, image, at, tap).map(whole)).collect()
}

/// The sizes of what the windows of an image give, channel by channel.
fn slid(window: &Window, image: &[usize]) -> Vec<usize> {
    [&image[..1], &counts(window, image)[..], &image[image.len() - 1..]].concat()
}

/// The largest of each window; padding never wins.
pub fn max_pool(asked: &Asked) -> Vec<Answer> {
    let (x, window) = (&asked.inputs[0], window(asked));
    let sizes = slid(window, &x.sizes);
    let value = |index: &Vec<usize>| {
        let all = elements(window, &x.sizes, index).into_iter().flatten().map(|at| x.at(&at));
        all.reduce(|a, b| if a.is_nan() || a >= b { a } else { b }).expect("an element")
    };
    vec![Answer::new(x.dtype, sizes.clone(), indices(&sizes).iter().map(value).collect())]
}

/// An image with a value of every window added to the element that has the window's number.
pub fn max_pool_grad(asked: &Asked) -> Vec<Answer> {
    let [into, numbers, g] = asked.inputs else { panic!("three inputs") };
    let mut values = into.values.clone();
    let mut scale: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    for index in indices(&g.sizes) {
        let places = elements(window(asked), &into.sizes, &index);
        if let Some(at) = &places[numbers.at(&index) as usize] {
            let at = at.iter().zip(&into.sizes).fold(0, |at, (i, n)| at * n + i);
            values[at] += g.at(&index);
            scale[at] += g.at(&index).abs();
        }
    }
    vec![Answer::scaled(into.dtype, into.sizes.clone(), values, scale)]
}

/// The element of every window that has its number; 0 in padding.
pub fn max_pool_pick(asked: &Asked) -> Vec<Answer> {
    let (x, numbers) = (&asked.inputs[0], &asked.inputs[1]);
    let value = |index: &Vec<usize>| {
        let places = elements(window(asked), &x.sizes, index);
        places[numbers.at(index) as usize].as_ref().map_or(0.0, |at| x.at(at))
    };
    let values = indices(&numbers.sizes).iter().map(value).collect();
    vec![Answer::new(x.dtype, numbers.sizes.clone(), values)]
}

fn average<'a>(asked: &'a Asked) -> &'a Average {
    let Attrs::Average(average) = asked.attrs else { panic!("no average") };
    average
}

/// The elements of an image that a window's mean is taken of, and how much of it each is.
fn shares(average: &Average, image: &[usize], index: &[usize]) -> Vec<(Vec<usize>, f64)> {
    let all = elements(&average.window, image, index);
    let whole = all.len();
    let inside: Vec<Vec<usize>> = all.into_iter().flatten().collect();
    let count = if average.counts_padding { whole } else { inside.len() };
    inside.into_iter().map(|at| (at, 1.0 / count as f64)).collect()
}

/// The mean of each window.
pub fn avg_pool(asked: &Asked) -> Vec<Answer> {
    let (x, average) = (&asked.inputs[0], average(asked));
    let sizes = slid(&average.window, &x.sizes);
    let of = |index: &Vec<usize>| shares(average, &x.sizes, index);
    let sum = |f: fn(f64) -> f64| -> Vec<f64> {
        let value = |index| of(index).iter().map(|(at, share)| f(x.at(at)) * share).sum();
        indices(&sizes).iter().map(value).collect()
    };
    vec![Answer::scaled(x.dtype, sizes.clone(), sum(|x| x), sum(f64::abs))]
}

/// The value of each window spread over what its mean is taken of.
pub fn avg_pool_grad(asked: &Asked) -> Vec<Answer> {
    let (g, average) = (&asked.inputs[0], average(asked));
    let lengths = average.image.sizes().expect("known").to_vec();
    let sizes = [&g.sizes[..1], &lengths[..], &g.sizes[g.sizes.len() - 1..]].concat();
    let count = sizes.iter().product();
    let (mut values, mut scale) = (vec![0.0; count], vec![0.0; count]);
    for index in indices(&g.sizes) {
        for (at, share) in shares(average, &sizes, &index) {
            let at = at.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i);
            values[at] += g.at(&index) * share;
            scale[at] += (g.at(&index) * share).abs();
        }
    }
    vec![Answer::scaled(g.dtype, sizes, values, scale)]
}

fn resize_of<'a>(asked: &'a Asked) -> &'a Resize {
    let Attrs::Resize(resize) = asked.attrs else { panic!("no resize") };
    resize
}

/// Along one axis, which elements of `from` an element of `to` is made of, and how much of each.
fn between(how: Between, at: usize, from: usize, to: usize) -> Vec<(usize, f64)> {
    let ratio = from as f64 / to as f64;
    let exact = match how {
        Between::Nearest => return vec![(((at as f64 + 0.5) * ratio).floor() as usize, 1.0)],
        Between::Linear => (at as f64 + 0.5) * ratio - 0.5,
        Between::LinearCorners if to == 1 => 0.0,
        Between::LinearCorners => at as f64 * (from as f64 - 1.0) / (to as f64 - 1.0),
    };
    let exact = exact.clamp(0.0, from as f64 - 1.0);
    let low = exact.floor() as usize;
    let share = exact - low as f64;
    vec![(low, 1.0 - share), ((low + 1).min(from - 1), share)]
}

/// What an element of the larger or smaller image is made of.
fn sources(
    resize: &Resize,
    image: &[usize],
    made: &[usize],
    index: &[usize],
) -> Vec<(Vec<usize>, f64)> {
    let mut all = vec![(vec![index[0]], 1.0)];
    for axis in 1..index.len() - 1 {
        let parts = between(resize.between, index[axis], image[axis], made[axis]);
        let more = |(place, share): &(Vec<usize>, f64)| {
            let longer = |(at, part): &(usize, f64)| ([&place[..], &[*at]].concat(), share * part);
            parts.iter().map(longer).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(more).collect();
    }
    let last = index[index.len() - 1];
    all.into_iter().map(|(place, share)| ([&place[..], &[last]].concat(), share)).collect()
}

pub fn resize(asked: &Asked) -> Vec<Answer> {
    let (x, resize) = (&asked.inputs[0], resize_of(asked));
    let to = resize.to.sizes().expect("known").to_vec();
    let sizes = [&x.sizes[..1], &to[..], &x.sizes[x.sizes.len() - 1..]].concat();
    let of = |index: &Vec<usize>| sources(resize, &x.sizes, &sizes, index);
    let sum = |f: fn(f64) -> f64| -> Vec<f64> {
        let value = |index| of(index).iter().map(|(at, share)| f(x.at(at)) * share).sum();
        indices(&sizes).iter().map(value).collect()
    };
    vec![Answer::scaled(x.dtype, sizes.clone(), sum(|x| x), sum(f64::abs))]
}

pub fn resize_grad(asked: &Asked) -> Vec<Answer> {
    let (g, resize) = (&asked.inputs[0], resize_of(asked));
    let lengths = resize.image.sizes().expect("known").to_vec();
    let sizes = [&g.sizes[..1], &lengths[..], &g.sizes[g.sizes.len() - 1..]].concat();
    let count = sizes.iter().product();
    let (mut values, mut scale) = (vec![0.0; count], vec![0.0; count]);
    for index in indices(&g.sizes) {
        for (at, share) in sources(resize, &sizes, &g.sizes, &index) {
            let at = at.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i);
            values[at] += g.at(&index) * share;
            scale[at] += (g.at(&index) * share).abs();
        }
    }
    vec![Answer::scaled(g.dtype, sizes, values, scale)]
}
