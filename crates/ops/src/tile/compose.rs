//! A program whose inputs are recipes, made into one program over generators and what is in memory.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::tile::{Form, Instr, Prim, Reg, TileProgram};

/// What a composed program loads.
#[derive(Debug, Clone)]
pub enum Composed {
    /// The input of that number of the original program.
    Input(usize),
    /// A generator, through that layout over the domain.
    Generator(Generator, Layout),
}

/// `program` with the recipes among its inputs written out, and what it then loads. Each recipe is
/// stretched to `domain`.
///
/// A recipe's value is rounded to its dtype as it would be if it lay in memory.
pub fn compose(
    program: &TileProgram,
    recipes: &[Option<&Recipe>],
    domain: &[usize],
) -> Option<(TileProgram, SmallVec<[Composed; 2]>)> {
    let mut made = TileProgram::loading(&[]);
    made.close = program.close.clone();
    let mut sources: SmallVec<[Composed; 2]> = SmallVec::new();
    // All loads first: registers are numbered loads first.
    let mut firsts: SmallVec<[Reg; 4]> = SmallVec::new();
    for (i, form) in program.loads.iter().enumerate() {
        firsts.push(made.loads.len() as Reg);
        match recipes.get(i).copied().flatten() {
            None => {
                made.loads.push(*form);
                sources.push(Composed::Input(i));
            }
            Some(recipe) => {
                for (generator, layout) in &recipe.sources {
                    made.loads.push(Form::Elements(generator.dtype()));
                    sources.push(Composed::Generator(*generator, layout.broadcast_to(domain)?));
                }
            }
        }
    }
    let mut map: SmallVec<[Reg; 16]> = SmallVec::new();
    for (i, first) in firsts.iter().enumerate() {
        map.push(match recipes.get(i).copied().flatten() {
            None => *first,
            Some(recipe) => inline(&mut made, recipe, *first),
        });
    }
    append(&mut made, &program.code, &mut map);
    made.stores = program.stores.iter().map(|(reg, form)| (map[*reg as usize], *form)).collect();
    Some((made, sources))
}

fn inline(made: &mut TileProgram, recipe: &Recipe, first: Reg) -> Reg {
    let mut map: SmallVec<[Reg; 16]> =
        (0..recipe.program.loads.len() as Reg).map(|i| first + i).collect();
    append(made, &recipe.program.code, &mut map);
    let (reg, form) = recipe.program.stores[0];
    let reg = map[reg as usize];
    match form {
        Form::Elements(dtype) if dtype.compute() != dtype => {
            made.push(Prim::RoundTo(dtype), &[reg])
        }
        _ => reg,
    }
}

fn append(made: &mut TileProgram, code: &[Instr], map: &mut SmallVec<[Reg; 16]>) {
    for instr in code {
        let args: SmallVec<[Reg; 3]> = instr.args.iter().map(|r| map[*r as usize]).collect();
        let reg = made.push_as(instr.prim, instr.dtype, &args);
        map.push(reg);
    }
}
