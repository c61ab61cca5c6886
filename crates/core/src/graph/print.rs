//! A graph as text: one line a node, readable enough to be the documentation of what happened.

use std::fmt;

use super::{Graph, Node};
use crate::attrs::Attrs;
use crate::looping::{Iterations, Loop};
use crate::window::Window;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, "")
    }
}

impl Graph {
    fn print(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        write!(f, "(")?;
        for (i, id) in self.inputs.iter().enumerate() {
            let info = self.value(*id);
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}%{}: {}", id.index(), info.ty)?;
            if let Some(name) = &info.name {
                write!(f, " `{name}`")?;
            }
        }
        writeln!(f, ") {{")?;
        for node in &self.nodes {
            self.print_node(f, node, indent)?;
        }
        write!(f, "{indent}  return")?;
        for (i, id) in self.outputs.iter().enumerate() {
            write!(f, "{}%{}", if i > 0 { ", " } else { " " }, id.index())?;
        }
        writeln!(f)?;
        write!(f, "{indent}}}")
    }

    fn print_node(&self, f: &mut fmt::Formatter<'_>, node: &Node, indent: &str) -> fmt::Result {
        write!(f, "{indent}  ")?;
        for (i, id) in node.outputs.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}%{}: {}", id.index(), self.ty(*id))?;
        }
        let makes = if node.outputs.is_empty() { "" } else { " = " };
        write!(f, "{makes}{}(", node.op.name)?;
        for (i, id) in node.inputs.iter().enumerate() {
            write!(f, "{}%{}", if i > 0 { ", " } else { "" }, id.index())?;
        }
        write!(f, ")")?;
        print_attrs(f, &node.attrs)?;
        let inner = format!("{indent}  ");
        for region in &node.regions {
            write!(f, " ")?;
            region.print(f, &inner)?;
        }
        writeln!(f)
    }
}

fn print_attrs(f: &mut fmt::Formatter<'_>, attrs: &Attrs) -> fmt::Result {
    match attrs {
        Attrs::None => Ok(()),
        Attrs::Reduce { axes, keep_dims } => {
            write!(f, " over {axes:?}{}", if *keep_dims { ", kept" } else { "" })
        }
        Attrs::Norm { axes, keep_dims, power } => {
            write!(f, " {power} over {axes:?}{}", if *keep_dims { ", kept" } else { "" })
        }
        Attrs::Axis(axis) | Attrs::Join { axis, .. } | Attrs::Split { axis, .. } => {
            write!(f, " along {axis}")
        }
        Attrs::Axes(axes) | Attrs::Squeeze { axes, .. } => write!(f, " at {axes:?}"),
        Attrs::Scan { axis, exclusive, reverse } => {
            let exclusive = if *exclusive { ", exclusive" } else { "" };
            write!(f, " along {axis}{exclusive}{}", if *reverse { ", reverse" } else { "" })
        }
        Attrs::Pad { widths, padding } => write!(f, " by {widths:?}, {padding:?}"),
        Attrs::Repeats(counts) => write!(f, " {counts:?} times"),
        Attrs::Repeat { axis, count } => write!(f, " along {axis}, {count} times"),
        Attrs::Roll { axis, shift } => write!(f, " along {axis} by {shift}"),
        Attrs::OneHot { on, off, .. } => write!(f, " {on} or {off}"),
        Attrs::Linspace { start, stop, .. } => write!(f, " from {start} to {stop}"),
        Attrs::Eye { diagonal, .. } | Attrs::Diagonal(diagonal) | Attrs::Diag { diagonal, .. } => {
            write!(f, " diagonal {diagonal}")
        }
        Attrs::Lengths { of, .. } => write!(f, " of {of}"),
        Attrs::Number(value) => write!(f, " {value}"),
        Attrs::Order(order) => write!(f, " to {order:?}"),
        Attrs::Slices(slices) | Attrs::Place { slices, .. } => {
            write!(f, " at [")?;
            for (i, s) in slices.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                write!(f, "{comma}{}+{}", s.start, s.len)?;
                if s.step != 1 {
                    write!(f, " by {}", s.step)?;
                }
            }
            write!(f, "]")
        }
        Attrs::Shape(_) | Attrs::DType(_) => Ok(()), // the result's type says it
        Attrs::Fill { value, .. } => write!(f, " with {value}"),
        Attrs::Range { start, step, .. } => write!(f, " from {start} by {step}"),
        Attrs::Random { key, .. } => write!(f, " {key:?}"),
        Attrs::Seeded { distribution, .. } => write!(f, " {distribution:?}"),
        Attrs::Matmul { transpose_a, transpose_b } => match (transpose_a, transpose_b) {
            (false, false) => Ok(()),
            (true, false) => write!(f, " left transposed"),
            (false, true) => write!(f, " right transposed"),
            (true, true) => write!(f, " both transposed"),
        },
        Attrs::Count(n) => write!(f, " {n}"),
        Attrs::Descending(down) => f.write_str(if *down { " down" } else { " up" }),
        Attrs::Right(right) => f.write_str(if *right { " right" } else { " left" }),
        Attrs::Histogram { low, high, bins } => write!(f, " {bins} from {low} to {high}"),
        Attrs::Window(window) => write_window(f, window),
        Attrs::Average(average) => write_window(f, &average.window),
        Attrs::Conv(conv) => {
            write_window(f, &conv.window)?;
            if conv.groups != 1 { write!(f, ", {} groups", conv.groups) } else { Ok(()) }
        }
        Attrs::Resize(resize) => write!(f, " to {} {:?}", resize.to, resize.between),
        Attrs::Rotary { base, back, .. } => {
            write!(f, " by {base}{}", if *back { ", back" } else { "" })
        }
        Attrs::Smoothing(share) => write!(f, " smoothed by {share}"),
        Attrs::Normalize { epsilon, centered, groups } => {
            let of = if *centered { "" } else { " of squares" };
            write!(f, "{of} by {groups} groups, epsilon {epsilon}")
        }
        Attrs::Attention { scale, causal, masked } => {
            let causal = if *causal { ", causal" } else { "" };
            let masked = if *masked { ", masked" } else { "" };
            write!(f, " scaled by {scale}{causal}{masked}")
        }
        Attrs::Tile(program) => write!(f, " {{ {program} }}"),
        Attrs::Branch { updates, .. } => print_updates(f, updates.iter().map(|(input, _)| *input)),
        Attrs::Loop(spec) => print_loop(f, spec),
        Attrs::Custom { saved, .. } => write!(f, " saving {saved:?}"),
        Attrs::Host { call, .. } => write!(f, " {:?}", call.label()),
        Attrs::World(world) | Attrs::Blocks { world, .. } => write!(f, " of {world:?}"),
        Attrs::Root { world, root } => write!(f, " with rank {root} of {world:?}"),
        Attrs::LoopGrad(spec) => {
            print_loop(f, &spec.of)?;
            write!(f, ", {} back", spec.back)?;
            write!(f, "{}", if spec.handed { "" } else { ", from the start" })
        }
    }
}

fn write_window(f: &mut fmt::Formatter<'_>, window: &Window) -> fmt::Result {
    let Window { size, stride, padding, dilation } = window;
    write!(f, " window {size:?} by {stride:?}, padding {padding:?}")?;
    if dilation.iter().any(|d| *d != 1) { write!(f, ", dilation {dilation:?}") } else { Ok(()) }
}

fn print_loop(f: &mut fmt::Formatter<'_>, spec: &Loop) -> fmt::Result {
    write!(f, " carrying {}", spec.carried)?;
    for (count, what) in [(spec.sliced, "sliced"), (spec.stacked, "stacked")] {
        if count > 0 {
            write!(f, ", {count} {what}")?;
        }
    }
    match &spec.iterations {
        Iterations::While { most: None } => {}
        Iterations::While { most: Some(n) } => write!(f, ", at most {n} iterations")?,
        Iterations::Times(n) => write!(f, ", {n} iterations")?,
    }
    write!(f, "{}", if spec.reverse { ", from the last" } else { "" })?;
    spec.max_checkpoints.map_or(Ok(()), |n| write!(f, ", {n} checkpoints"))?;
    write!(f, "{}", if spec.spills { ", states in a file" } else { "" })?;
    print_updates(f, spec.updates.iter().copied())
}

/// Inputs that are written in place.
fn print_updates(
    f: &mut fmt::Formatter<'_>,
    mut inputs: impl Iterator<Item = usize>,
) -> fmt::Result {
    inputs.try_for_each(|input| write!(f, ", writes input {input}"))
}
