//! Products of 16 bits with lengths that are no whole accesses, cut into one of whole accesses and a rest: the library's quick algorithms
//! read and write 16 bytes at once.
//!
//! Only where rows begin at whole accesses, which a plan sees to ([`Target::row_step`](tonnage_plan::Target::row_step)): of rows that do not,
//! no part is quick.
//!
//! Decision: `docs/decisions/rows-apart.md`.

use smallvec::{SmallVec, smallvec};
use tonnage_core::{DType, TensorType};

use crate::driver::ProductAddresses;
use crate::product::{Matrix, Product};

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// Operations that are worth more launches than one.
const MANY: u64 = 1 << 30;

/// Elements that are worth room between rows, and rows that are long beside it.
const LARGE: usize = 1 << 19;
const LONG: usize = 512;

/// A part of a product: where its operands and its result begin in those of the whole, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductPart {
    /// What is computed.
    pub product: Product,
    /// Where in the left operand.
    pub left: u64,
    /// Where in the right operand.
    pub right: u64,
    /// Where in the result.
    pub out: u64,
    /// The column that it begins with.
    pub col: u64,
    /// Whether what it adds up has a part that comes before.
    pub adds: bool,
    /// Whether a part that adds to it comes behind.
    pub is_added_to: bool,
}

impl ProductPart {
    /// Where the part finds what it needs, beside the whole. A bias is added by the last that writes an element, and what else is added by
    /// the first.
    pub fn addresses(&self, whole: ProductAddresses) -> ProductAddresses {
        let size = self.product.dtype.size() as u64;
        let out = whole.out + self.out * size;
        let bias = whole.bias.map(|bias| bias + self.col * size);
        let added = whole.added.map(|added| added + self.out * size);
        ProductAddresses {
            left: whole.left + self.left * size,
            right: whole.right + self.right * size,
            bias: bias.filter(|_| !self.is_added_to),
            added: if self.adds { Some(out) } else { added },
            out,
            workspace: whole.workspace,
        }
    }
}

/// Elements of the widest access of a product whose lengths matter: those of 16 bits run on tensor cores.
fn access(dtype: DType) -> Option<usize> {
    (dtype.is_float() && dtype.size() == 2).then_some(ACCESS / dtype.size())
}

/// How far apart rows lie of a tensor that products make or read, where each is to begin at a whole access; `None` where they do so
/// anyway, or are too few or too short to be worth the room.
pub fn row_step(ty: &TensorType) -> Option<usize> {
    let access = access(ty.dtype)?;
    let sizes = ty.shape.sizes()?;
    let width = *sizes.last().filter(|_| sizes.len() >= 2)?;
    let is_worth_it = width >= LONG && sizes.iter().product::<usize>() >= LARGE;
    (is_worth_it && !width.is_multiple_of(access)).then(|| width.next_multiple_of(access))
}

/// The parts of a product, in the order in which they are launched.
pub fn parts(product: &Product) -> SmallVec<[ProductPart; 4]> {
    let whole = ProductPart {
        product: *product,
        left: 0,
        right: 0,
        out: 0,
        col: 0,
        adds: false,
        is_added_to: false,
    };
    let access = access(product.dtype).map(|access| access as u64);
    let Some(access) = access.filter(|access| is_cut(product, *access)) else {
        return smallvec![whole];
    };
    let Product { left, right, .. } = *product;
    let mut parts: SmallVec<[ProductPart; 4]> = smallvec![whole];
    // Columns are neighbours in the result.
    parts = cut(&parts, product.cols, access, |part, from, len| ProductPart {
        product: Product { cols: len, ..part.product },
        right: part.right + at(right, 0, from),
        out: part.out + from,
        col: from,
        ..*part
    });
    if left.by_columns {
        parts = cut(&parts, product.rows, access, |part, from, len| ProductPart {
            product: Product { rows: len, ..part.product },
            left: part.left + at(left, from, 0),
            out: part.out + from * product.lead,
            ..*part
        });
    }
    if !left.by_columns || right.by_columns {
        parts = cut(&parts, product.depth, access, |part, from, len| {
            // The short sum comes first, and the long one is added to it before that is rounded.
            let is_long = from == 0 && len < product.depth;
            ProductPart {
                product: Product { depth: len, ..part.product },
                adds: is_long,
                is_added_to: from > 0,
                left: part.left + at(left, 0, from),
                right: part.right + at(right, from, 0),
                ..*part
            }
        });
        parts.sort_by_key(|part| part.adds);
    }
    parts
}

/// Whether some length is no whole accesses, and cutting it makes the most of the product quicker.
fn is_cut(product: &Product, access: u64) -> bool {
    let Product { rows, cols, depth, batch, left, right, lead, .. } = *product;
    let is_whole = |n: i64| n.unsigned_abs().is_multiple_of(access);
    let begins_whole = |matrix: Matrix| is_whole(matrix.lead) && is_whole(matrix.batch);
    let operations = [2, rows, cols, depth, batch].into_iter().fold(1u64, u64::saturating_mul);
    operations >= MANY
        && begins_whole(left)
        && begins_whole(right)
        && lead.is_multiple_of(access)
        && (batch == 1 || rows.wrapping_mul(lead).is_multiple_of(access))
}

/// The position of an element in a matrix.
fn at(matrix: Matrix, row: u64, col: u64) -> u64 {
    let lead = matrix.lead as u64;
    if matrix.by_columns { col * lead + row } else { row * lead + col }
}

/// Each part as it is, or as two: one of whole accesses, and a rest.
fn cut(
    parts: &[ProductPart],
    length: u64,
    access: u64,
    part: impl Fn(&ProductPart, u64, u64) -> ProductPart,
) -> SmallVec<[ProductPart; 4]> {
    let whole = length / access * access;
    if whole == 0 || whole == length {
        return SmallVec::from_slice(parts);
    }
    parts.iter().flat_map(|one| [part(one, 0, whole), part(one, whole, length - whole)]).collect()
}

#[cfg(test)]
mod tests {
    use tonnage_core::DType;
    use tonnage_core::layout::Layout;

    use super::*;

    const ROWS: usize = 2048;
    const WIDTH: usize = 256;
    const TOKENS: usize = 2051;
    const STEP: usize = 2056;

    fn product(
        (left, left_transposed): (&Layout, bool),
        (right, right_transposed): (&Layout, bool),
        out: [usize; 2],
        step: Option<usize>,
    ) -> Product {
        let (left, right) = ((left, left_transposed), (right, right_transposed));
        Product::of(DType::BF16, left, right, &out).unwrap().with_rows_apart(step)
    }

    /// Whole numbers in every element that a layout has.
    fn numbers(layout: &Layout, by: u64) -> Vec<i64> {
        (0..layout.end() as u64).map(|i| (i * by % 7) as i64 - 3).collect()
    }

    /// The result of some parts, computed one after the other.
    fn computed(parts: &[ProductPart], [left, right]: [&[i64]; 2], len: usize) -> Vec<Option<i64>> {
        let mut out = vec![None; len];
        for part in parts {
            let product = &part.product;
            for row in 0..product.rows {
                for col in 0..product.cols {
                    let term = |k: u64| {
                        left[(part.left + at(product.left, row, k)) as usize]
                            * right[(part.right + at(product.right, k, col)) as usize]
                    };
                    let sum: i64 = (0..product.depth).map(term).sum();
                    let to = &mut out[(part.out + row * product.lead + col) as usize];
                    *to = Some(sum + if part.adds { to.unwrap() } else { 0 });
                }
            }
        }
        out
    }

    #[test]
    fn parts_give_what_the_whole_gives() {
        // Short stretches of what a head does: logits, the gradients of what goes in, and of the table.
        let logits = Layout::rows_apart(&[19, 35][..], 40);
        let (hidden, table) =
            (Layout::contiguous(&[19, 16][..]), Layout::contiguous(&[35, 16][..]));
        let cases = [
            ((&hidden, false), (&table, true), [19, 35], Some(40)),
            ((&logits, false), (&table, false), [19, 16], None),
            ((&logits, true), (&hidden, false), [35, 16], None),
        ];
        for (left, right, sizes, step) in cases {
            let whole = product(left, right, sizes, step);
            let out = Layout::rows_apart(&sizes[..], step.unwrap_or(sizes[1]));
            let given = [numbers(left.0, 5), numbers(right.0, 3)];
            let given = [&given[0][..], &given[1][..]];
            // A small one is not cut.
            let expected = computed(&parts(&whole), given, out.end());
            // As if it were a large one.
            let large = Product { batch: 1 << 20, ..whole };
            let mut cut = parts(&large);
            cut.iter_mut().for_each(|part| part.product.batch = 1);
            assert_eq!(cut.len(), 2, "{whole:?}");
            assert_eq!(computed(&cut, given, out.end()), expected);
        }
    }

    #[test]
    fn most_of_a_product_with_odd_lengths_is_whole_accesses() {
        let logits = Layout::rows_apart(&[ROWS, TOKENS][..], STEP);
        let (hidden, table) =
            (Layout::contiguous(&[ROWS, WIDTH][..]), Layout::contiguous(&[TOKENS, WIDTH][..]));
        let sizes = |product: &Product| [product.rows, product.cols, product.depth];
        let cut = |product: Product| -> Vec<_> {
            parts(&product).iter().map(|part| (sizes(&part.product), part.adds)).collect()
        };
        let of = |left, right, out, step| cut(product(left, right, out, step));
        assert_eq!(
            of((&hidden, false), (&table, true), [ROWS, TOKENS], Some(STEP)),
            [([2048, 2048, 256], false), ([2048, 3, 256], false)]
        );
        // The short sum first.
        assert_eq!(
            of((&logits, false), (&table, false), [ROWS, WIDTH], None),
            [([2048, 256, 3], false), ([2048, 256, 2048], true)]
        );
        assert_eq!(
            of((&logits, true), (&hidden, false), [TOKENS, WIDTH], None),
            [([2048, 256, 2048], false), ([3, 256, 2048], false)]
        );
        // Rows that do not begin at whole accesses, small products and wide numbers are left whole.
        let close = Layout::contiguous(&[ROWS, TOKENS][..]);
        assert_eq!(of((&close, false), (&table, false), [ROWS, WIDTH], None).len(), 1);
        let small = Layout::rows_apart(&[8, TOKENS][..], STEP);
        assert_eq!(of((&small, false), (&table, false), [8, WIDTH], None).len(), 1);
        let whole = product((&logits, false), (&table, false), [ROWS, WIDTH], None);
        assert_eq!(cut(Product { dtype: DType::F32, ..whole }).len(), 1);
    }

    #[test]
    fn what_is_added_is_added_once() {
        let logits = Layout::rows_apart(&[ROWS, TOKENS][..], STEP);
        let (hidden, table) =
            (Layout::contiguous(&[ROWS, WIDTH][..]), Layout::contiguous(&[TOKENS, WIDTH][..]));
        let (bias, added) = (Some(1 << 20), Some(1 << 30));
        let whole =
            ProductAddresses { left: 0, right: 0, bias, added, out: 1 << 40, workspace: None };
        let of = |product: Product| -> Vec<_> {
            let addresses = |part: &ProductPart| part.addresses(whole);
            parts(&product).iter().map(addresses).map(|at| (at.bias, at.added, at.out)).collect()
        };
        let deep = product((&logits, false), (&table, false), [ROWS, WIDTH], None);
        assert_eq!(of(deep), [(None, added, 1 << 40), (bias, Some(1 << 40), 1 << 40)]);
        let wide = product((&hidden, false), (&table, true), [ROWS, TOKENS], Some(STEP));
        let behind = |address: u64| Some(address + 2 * 2048);
        assert_eq!(
            of(wide),
            [(bias, added, 1 << 40), (behind(1 << 20), behind(1 << 30), (1 << 40) + 2 * 2048)]
        );
    }

    #[test]
    fn long_rows_of_16_bits_begin_at_whole_accesses() {
        let step = |dtype, sizes: &[usize]| row_step(&TensorType::new(dtype, sizes));
        assert_eq!(step(DType::BF16, &[64, 1024, 50_257]), Some(50_264));
        assert_eq!(step(DType::F16, &[1024, 1001]), Some(1008));
        assert_eq!(step(DType::BF16, &[64, 1024, 50_304]), None);
        assert_eq!(step(DType::F32, &[1024, 1001]), None);
        assert_eq!(step(DType::BF16, &[1 << 20, 3]), None);
        assert_eq!(step(DType::BF16, &[4, 1001]), None);
    }
}
