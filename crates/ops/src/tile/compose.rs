//! A program whose inputs are recipes, made into one program over generators and what is in memory.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, LONGEST, Recipe};
use tonnage_core::tile::{Close, Form, Instr, Prim, Reg, TileProgram};

use super::file_order::FileOrder;
use super::{TileLimits, stored};

/// What a composed program loads.
#[derive(Debug, Clone)]
pub enum Composed {
    /// The input of that number of the original program.
    Input(usize),
    /// A generator, through that layout over the domain.
    Generator(Generator, Layout),
}

impl Composed {
    /// The generator that it reads, if it does.
    pub fn generator(&self) -> Option<(&Generator, &Layout)> {
        match self {
            Composed::Generator(generator, layout) => Some((generator, layout)),
            Composed::Input(_) => None,
        }
    }
}

/// The result of a program as a recipe again, where nothing that it reads is in memory and it is short enough
/// to be chained on.
pub fn chained<'a>(
    program: &TileProgram,
    reads: impl Iterator<Item = Option<(&'a Generator, &'a Layout)>>,
    domain: &[usize],
    limits: &TileLimits,
) -> Option<Recipe> {
    let one = matches!(program.stores.as_slice(), [(_, Form::Elements(_))]);
    if !one || program.close != Close::Store || program.code.len() > LONGEST || !limits.fit(program)
    {
        return None;
    }
    let owned = |(generator, layout): (&Generator, &Layout)| (generator.clone(), layout.clone());
    let sources = reads.map(|read| read.map(owned)).collect::<Option<_>>()?;
    Some(Recipe { program: program.clone(), sources, sizes: domain.into() })
}

/// `program` with the recipes among its inputs written out, and what it then loads. Each recipe is
/// broadcast to `domain`. `None` where one does not broadcast to it.
///
/// A recipe's value is rounded to its dtype as it would be if it lay in memory. Recipes that cannot be written
/// out become `None` and are left as inputs, which the caller brings into memory: those that are read as bits, or from a
/// file in a way that takes too long, and the longest ones where all together would not [fit](TileLimits::fit).
pub fn compose(
    program: &TileProgram,
    recipes: &mut [Option<&Recipe>],
    domain: &[usize],
    limits: &TileLimits,
) -> Option<(TileProgram, SmallVec<[Composed; 2]>)> {
    for (recipe, form) in recipes.iter_mut().zip(&program.loads) {
        if *form == Form::Bits || recipe.is_some_and(|r| stored::is_read_often(r, domain)) {
            *recipe = None;
        }
    }
    // A reduction can go through files in the order that they have.
    if FileOrder::of_recipes(program, recipes, domain).is_none() {
        for recipe in recipes.iter_mut() {
            *recipe = recipe.filter(|recipe| stored::in_order(recipe));
        }
    }
    loop {
        let made = write_out(program, recipes, domain)?;
        let size = |recipe: &Recipe| recipe.program.loads.len() + recipe.program.code.len();
        let written = recipes.iter_mut().filter(|recipe| recipe.is_some());
        match written.max_by_key(|recipe| recipe.map(size)) {
            Some(longest) if !limits.fit(&made.0) => *longest = None,
            _ => return Some(made),
        }
    }
}

fn write_out(
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
                    let layout = layout.broadcast_to(domain)?;
                    sources.push(Composed::Generator(generator.clone(), layout));
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
        // Computed in another dtype, as `linspace` is: the store would have converted it.
        Form::Elements(dtype) if made.register(reg) != dtype.compute() => {
            made.push(Prim::Cast(dtype), &[reg])
        }
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
