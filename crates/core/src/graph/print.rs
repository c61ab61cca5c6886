//! A graph as text: one line a node, readable enough to be the documentation of what happened.

use std::fmt;

use super::{Graph, Node};
use crate::attrs::Attrs;
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
        write!(f, " = {}(", node.op.name)?;
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
        Attrs::Axis(axis) => write!(f, " along {axis}"),
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
        Attrs::Matmul { transpose_a, transpose_b } => match (transpose_a, transpose_b) {
            (false, false) => Ok(()),
            (true, false) => write!(f, " left transposed"),
            (false, true) => write!(f, " right transposed"),
            (true, true) => write!(f, " both transposed"),
        },
        Attrs::Count(n) => write!(f, " {n}"),
        Attrs::Window(window) => write_window(f, window),
        Attrs::Average(average) => write_window(f, &average.window),
        Attrs::Conv(conv) => {
            write_window(f, &conv.window)?;
            if conv.groups != 1 { write!(f, ", {} groups", conv.groups) } else { Ok(()) }
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
        Attrs::Loop { carried, most } => {
            write!(f, " carrying {carried}")?;
            most.map_or(Ok(()), |n| write!(f, ", at most {n} rounds"))
        }
        Attrs::LoopGrad { carried, slots, .. } => {
            write!(f, " carrying {carried}")?;
            slots.map_or(Ok(()), |n| write!(f, ", {n} slots"))
        }
    }
}

fn write_window(f: &mut fmt::Formatter<'_>, window: &Window) -> fmt::Result {
    let Window { size, stride, padding, dilation } = window;
    write!(f, " window {size:?} by {stride:?}, padding {padding:?}")?;
    if dilation.iter().any(|d| *d != 1) { write!(f, ", dilation {dilation:?}") } else { Ok(()) }
}
