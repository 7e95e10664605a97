//! Computes the weight of the empty text for each symbol.
//!
//! e(X) = Σ over rules X → Y₁…Yₙ of P · e(Y₁) ⋯ e(Yₙ). These equations are not linear if a right side has two symbols.
//! They are solved loop by loop from below, so that the result is the *least* solution, which is the one that counts
//! derivations. For probabilities this is Newton's method, which never overshoots from below: `S -> S S [0.6] | ε
//! [0.4]` has the solutions 2/3 and 1, and the result is 2/3.

use crate::closure::{LARGEST_LOOP, Unsolved};
use crate::core::Core;
use crate::scc::components;
use crate::semiring::{Fixpoint, Semiring};

/// Computes the weight of the empty text for each symbol with rules.
pub(crate) fn empty_weights<S: Semiring>(
    core: &Core,
    weights: &[S::Value],
) -> Result<Vec<S::Value>, Unsolved> {
    let count = core.nonterminals as usize;
    let mut rules: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (number, rule) in core.rules.iter().enumerate() {
        let right = core.right(rule);
        if right.iter().all(|symbol| core.may_be_empty(*symbol)) {
            rules[rule.left as usize].push(number as u32);
            below[rule.left as usize].extend(right);
        }
    }
    let mut empty = vec![S::ZERO; count];
    let parts = components(count, |node| &below[node as usize]);
    // Successors come first.
    for members in &parts.members {
        let looped = members.len() > 1 || members.iter().any(|node| below[*node as usize].contains(node));
        let system = System::<S> { core, weights, rules: &rules, members };
        match S::FIXPOINT {
            _ if !looped => system.round(&mut empty),
            Fixpoint::Rounds => (0..=members.len()).for_each(|_| system.round(&mut empty)),
            Fixpoint::Infinite => {
                let nullable = members.iter().filter(|node| core.may_be_empty(**node));
                nullable.for_each(|node| empty[*node as usize] = S::star(S::ONE).unwrap_or(S::ONE));
            }
            Fixpoint::Newton => system.newton(&mut empty)?,
        }
    }
    Ok(empty)
}

/// The equations of one loop.
struct System<'a, S: Semiring> {
    core: &'a Core,
    weights: &'a [S::Value],
    rules: &'a [Vec<u32>],
    members: &'a [u32],
}

impl<S: Semiring> System<'_, S> {
    /// Evaluates the right sides and assigns them to the left sides.
    fn round(&self, empty: &mut [S::Value]) {
        for node in self.members {
            let mut sum = S::ZERO;
            for number in &self.rules[*node as usize] {
                let right = self.core.right(&self.core.rules[*number as usize]);
                let weight = self.weights[*number as usize];
                sum = S::add(
                    sum,
                    right.iter().fold(weight, |product, part| S::mul(product, empty[*part as usize])),
                );
            }
            empty[*node as usize] = sum;
        }
    }

    fn newton(&self, empty: &mut [S::Value]) -> Result<(), Unsolved> {
        const MAX_ROUNDS: usize = 80;
        let size = self.members.len();
        if size > LARGEST_LOOP / 2 {
            return Err(Unsolved::TooLarge(size));
        }
        let mut known: Vec<f64> = empty.iter().map(|value| S::log(*value).exp()).collect();
        for _ in 0..MAX_ROUNDS {
            let (mut matrix, mut missing) = (vec![0.0; size * size], vec![0.0; size]);
            for (row, node) in self.members.iter().enumerate() {
                matrix[row * size + row] = 1.0;
                missing[row] = -known[*node as usize];
                for number in &self.rules[*node as usize] {
                    self.linearize(*number, &known, row, &mut matrix, &mut missing);
                }
            }
            let Some(steps) = solve(matrix, missing) else { break };
            let mut moved = 0.0f64;
            for (node, step) in self.members.iter().zip(steps) {
                known[*node as usize] = (known[*node as usize] + step).clamp(0.0, 1.0);
                moved = moved.max(step.abs());
            }
            if moved < 1e-16 {
                break;
            }
        }
        for node in self.members {
            empty[*node as usize] = S::weight(known[*node as usize]);
        }
        Ok(())
    }

    /// Adds one rule to the equations (1 − J) · step = F(known) − known.
    fn linearize(&self, number: u32, known: &[f64], row: usize, matrix: &mut [f64], missing: &mut [f64]) {
        let size = self.members.len();
        let right = self.core.right(&self.core.rules[number as usize]);
        let weight = S::log(self.weights[number as usize]).exp();
        missing[row] += right.iter().fold(weight, |product, part| product * known[*part as usize]);
        for (at, part) in right.iter().enumerate() {
            let Ok(column) = self.members.binary_search(part) else { continue };
            let others = right.iter().enumerate().filter(|(other, _)| *other != at);
            matrix[row * size + column] -=
                others.fold(weight, |product, (_, part)| product * known[*part as usize]);
        }
    }
}

/// Solves a system of linear equations by elimination with pivots; `None` if it has no unique solution.
pub(crate) fn solve(mut matrix: Vec<f64>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| matrix[a * size + column].abs().total_cmp(&matrix[b * size + column].abs()))?;
        if matrix[pivot * size + column].abs() < 1e-300 {
            return None;
        }
        for at in 0..size {
            matrix.swap(pivot * size + at, column * size + at);
        }
        right.swap(pivot, column);
        for row in column + 1..size {
            let factor = matrix[row * size + column] / matrix[column * size + column];
            if factor == 0.0 {
                continue;
            }
            for at in column..size {
                matrix[row * size + at] -= factor * matrix[column * size + at];
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|at| matrix[row * size + at] * right[at]).sum();
        right[row] = (right[row] - known) / matrix[row * size + row];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved_with_pivots() {
        // y = 3, 2x + y = 5
        assert_eq!(solve(vec![0.0, 1.0, 2.0, 1.0], vec![3.0, 5.0]), Some(vec![1.0, 3.0]));
        assert_eq!(solve(vec![1.0, 1.0, 1.0, 1.0], vec![1.0, 2.0]), None);
    }
}
