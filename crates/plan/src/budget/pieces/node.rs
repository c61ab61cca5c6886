//! What one node makes of pieces: whether the op on the i-th part gives the i-th part of its results, or a
//! term of them. Rows say so by `axes`; tile programs are read themselves, since they know more: what they reduce and
//! where bits lie.

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::{AxisOf, Call, Lower, Mem};
use tonnage_core::shape::{Shape, TensorType};
use tonnage_core::tile::{Close, Form, Reduction, TileProgram};
use tonnage_ops::shape::reshape::RESHAPE;

use super::PieceOf;

/// What is known of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchPart {
    /// It does not depend on the batch.
    Whole,
    /// A piece is a part of it along that axis.
    Along(usize),
    /// A piece is the bits of a piece of that domain, cut along that axis: it means nothing elsewhere.
    Packed(Shape, usize),
    /// Every piece gives a term; this makes one of them.
    Folded(Reduction),
    /// It needs something that is complete only when all pieces are done.
    After,
}

/// How a node runs on pieces.
#[derive(Debug, Clone)]
pub struct OnPieces {
    /// For each input that is whole, the axis along which it is cut; `None`: it is read whole.
    pub cuts: SmallVec<[Option<usize>; 4]>,
    /// What it makes.
    pub makes: SmallVec<[BatchPart; 2]>,
    /// What it is told.
    pub attrs: Attrs,
}

type Group = SmallVec<[(usize, usize); 2]>;

/// Whether a node has to see everything complete: an effect, or what goes to a file that outlives the call.
pub fn is_last(node: &Node) -> bool {
    node.has_effect() || node.op.mem == Mem::File
}

/// How a node that reads pieces runs on them; `None` where it has to see the whole.
pub fn on_pieces(
    graph: &Graph,
    node: &Node,
    parts: &[BatchPart],
    piece: PieceOf,
) -> Option<OnPieces> {
    let read = |id: &ValueId| parts[id.index()].clone();
    on_parts(graph, node, node.inputs.iter().map(read).collect(), piece)
}

/// The same of a node that reads these parts.
pub fn on_parts(
    graph: &Graph,
    node: &Node,
    reads: SmallVec<[BatchPart; 4]>,
    piece: PieceOf,
) -> Option<OnPieces> {
    if !node.regions.is_empty() || is_last(node) {
        return None;
    }
    let seen = PieceInference { graph, node, reads, piece };
    graph.with_call(node, |call| match node.op.lower {
        Lower::Tile(make) => seen.tile(call, &make(call, node.aux).ok()?),
        _ if node.op == &RESHAPE => seen.reshape(),
        _ => seen.row(call),
    })
}

/// A type with a piece along an axis.
pub fn piece_of(ty: &TensorType, axis: usize, piece: PieceOf) -> Option<TensorType> {
    let mut part = ty.clone();
    *part.shape.get_mut(axis)? = piece.part_of(ty.shape.get(axis)?)?;
    Some(part)
}

struct PieceInference<'g> {
    graph: &'g Graph,
    node: &'g Node,
    /// What is known of each input.
    reads: SmallVec<[BatchPart; 4]>,
    piece: PieceOf,
}

impl PieceInference<'_> {
    fn made(&self, k: usize) -> Option<&TensorType> {
        Some(self.graph.ty(*self.node.outputs.get(k)?))
    }

    /// The attributes where the result is cut along an axis.
    fn attrs(&self, axis: usize) -> Option<Attrs> {
        let of = self.made(0)?;
        let len = self.piece.part_of(of.shape.get(axis)?)?;
        Some(self.node.attrs.of_piece(of, axis, &len))
    }

    fn tile(&self, call: &Call, program: &TileProgram) -> Option<OnPieces> {
        let domain = tonnage_ops::tile::domain(call, program).ok()?;
        let rank = domain.rank();
        let mut cut: Option<usize> = None;
        for ((part, ty), form) in self.reads.iter().zip(call.inputs).zip(&program.loads) {
            let axis = match part {
                BatchPart::Along(own) if *form != Form::Bits && ty.shape.rank() <= rank => {
                    let axis = own + rank - ty.shape.rank();
                    (ty.shape[*own] == domain[axis]).then_some(axis)?
                }
                BatchPart::Packed(of, axis) if *form == Form::Bits && *of == domain => *axis,
                BatchPart::Whole if *form != Form::Bits => continue,
                _ => return None,
            };
            if *cut.get_or_insert(axis) != axis {
                return None;
            }
        }
        let cut = cut?;
        self.piece.part_of(&domain[cut])?;
        let cuts = self.reads.iter().zip(call.inputs).map(|(part, ty)| {
            let own = (cut + ty.shape.rank()).checked_sub(rank)?;
            (*part == BatchPart::Whole && !ty.shape[own].is(1)).then_some(own)
        });
        let cuts = cuts.collect();
        let (makes, attrs): (SmallVec<[BatchPart; 2]>, Attrs) = match &program.close {
            Close::Store => {
                let of = |(_, form): &(_, Form)| match form {
                    Form::Bits => BatchPart::Packed(domain.clone(), cut),
                    Form::Elements(_) => BatchPart::Along(cut),
                };
                (program.stores.iter().map(of).collect(), self.attrs(cut)?)
            }
            Close::Reduce { reduction: fold, axes } if axes.contains(&cut) => {
                if leaves_range(*fold, self.made(0)?.dtype) {
                    return None;
                }
                (SmallVec::from_iter([BatchPart::Folded(*fold)]), self.node.attrs.clone())
            }
            Close::Reduce { axes, .. } => {
                let kept = self.made(0)?.shape.rank() == rank;
                let gone = axes.iter().filter(|axis| **axis < cut && !kept).count();
                (SmallVec::from_iter([BatchPart::Along(cut - gone)]), self.attrs(cut - gone)?)
            }
        };
        for (k, part) in makes.iter().enumerate() {
            let BatchPart::Along(axis) = part else { continue };
            if self.made(k)?.shape.get(*axis) != Some(&domain[cut]) {
                return None;
            }
        }
        (makes.len() == self.node.outputs.len()).then_some(OnPieces { cuts, makes, attrs })
    }

    /// Elements keep their order: a part of the leading ones is a part of the leading ones.
    fn reshape(&self) -> Option<OnPieces> {
        let [BatchPart::Along(axis)] = self.reads.as_slice() else { return None };
        let (from, to) = (&self.graph.ty(self.node.inputs[0]).shape, &self.made(0)?.shape);
        // Lengths of 1 may stand before what is cut, and nothing else that is new.
        let mut before = from.get(..*axis)?.iter().filter(|len| !len.is(1));
        let mut others = to.iter().enumerate().filter(|(_, len)| !len.is(1));
        let cut = loop {
            let (at, len) = others.next()?;
            match before.next() {
                Some(same) if same == len => {}
                Some(_) => return None,
                None => break at,
            }
        };
        self.piece.part_of(&from[*axis])?;
        let (cuts, makes) =
            (SmallVec::from_iter([None]), SmallVec::from_iter([BatchPart::Along(cut)]));
        Some(OnPieces { cuts, makes, attrs: self.attrs(cut)? })
    }

    fn row(&self, call: &Call) -> Option<OnPieces> {
        let map = (self.node.op.axes)(call);
        let along = |of: &AxisOf| match of {
            AxisOf::Along(group) => Some(group.clone()),
            AxisOf::Mixed => None,
        };
        let first = map.outputs.first()?.iter().enumerate();
        let found = first.filter_map(|(axis, of)| Some((axis, along(of)?)));
        for (axis, group) in found {
            let Some(cuts) = self.cuts(&group) else { continue };
            let mut makes: SmallVec<[BatchPart; 2]> = SmallVec::from_iter([BatchPart::Along(axis)]);
            for axes in &map.outputs[1..] {
                let same = |of: &AxisOf| along(of).is_some_and(|g| is_same(&g, &group));
                makes.push(BatchPart::Along(axes.iter().position(same)?));
            }
            let attrs = self.attrs(axis)?;
            if self.node.outputs.len() > makes.len() {
                makes.extend(self.extra(call, &group, &attrs, makes.len())?);
            }
            return Some(OnPieces { cuts, makes, attrs });
        }
        let cuts = map.summed.iter().find_map(|group| self.cuts(group))?;
        if self.node.aux {
            return None;
        }
        let makes = self.node.outputs.iter().map(|_| BatchPart::Folded(Reduction::Sum)).collect();
        Some(OnPieces { cuts, makes, attrs: self.node.attrs.clone() })
    }

    /// The axes of whole inputs that are cut along with a group, if all pieces are part of it and cut so.
    fn cuts(&self, group: &Group) -> Option<SmallVec<[Option<usize>; 4]>> {
        let mut cuts = SmallVec::new();
        for (input, part) in self.reads.iter().enumerate() {
            let own = group.iter().find(|(i, _)| *i == input).map(|(_, axis)| *axis);
            cuts.push(match (part, own) {
                (BatchPart::Along(axis), Some(own)) if *axis == own => None,
                (BatchPart::Whole, own) => own,
                _ => return None,
            });
        }
        let (input, axis) = group.first()?;
        self.piece.part_of(self.graph.ty(*self.node.inputs.get(*input)?).shape.get(*axis)?)?;
        Some(cuts)
    }

    /// Extra outputs are for the op's own gradient on the same piece: where their types say that a piece has a
    /// part of them, it is that part.
    fn extra(
        &self,
        call: &Call,
        group: &Group,
        attrs: &Attrs,
        count: usize,
    ) -> Option<Vec<BatchPart>> {
        let mut inputs = call.inputs.to_vec();
        for (input, axis) in group {
            inputs[*input] = piece_of(&inputs[*input], *axis, self.piece)?;
        }
        let piece = Call { inputs: &inputs, attrs, ..*call };
        let made = (self.node.op.saves.aux)(&piece).ok()?;
        let whole = self.node.outputs.get(count..)?;
        if made.len() != whole.len() {
            return None;
        }
        let part = |(piece, id): (&TensorType, &ValueId)| {
            let whole = self.graph.ty(*id);
            let axis = (0..whole.shape.rank())
                .find(|axis| piece_of(whole, *axis, self.piece).as_ref() == Some(piece))?;
            Some(BatchPart::Along(axis))
        };
        made.iter().zip(whole).map(part).collect()
    }
}

fn is_same(a: &Group, b: &Group) -> bool {
    a.len() == b.len() && a.iter().all(|pair| b.contains(pair))
}

/// Whether results of pieces may be infinite or zero where that of the whole is not: more than last digits would differ.
fn leaves_range(reduction: Reduction, dtype: DType) -> bool {
    reduction == Reduction::Prod && dtype.is_float()
}

/// The type in which sums of pieces are added up: that of the whole, or f32 where that has 16 bits. Rounded after every piece, a
/// sum would lose digits; of f16 that of a piece may overflow though that of the whole does not.
pub fn sum_type(whole: &TensorType) -> TensorType {
    let is_half = matches!(whole.dtype, DType::F16 | DType::BF16);
    let dtype = if is_half { DType::F32 } else { whole.dtype };
    TensorType { dtype, ..whole.clone() }
}
