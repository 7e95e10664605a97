//! The forward pass as one would write it on a board: one sequence, no cache, double precision, a loop for each sum.
//!
//! It rounds what goes into a matrix to eight-bit blocks, as the model does, so that what is left to differ is the order of
//! sums.
#![allow(clippy::needless_range_loop, reason = "sums as on a board, by their indices")]

use crate::tiny::Tiny;

/// The logits after each token.
pub(crate) fn logits(tiny: &Tiny, tokens: &[u32]) -> Vec<Vec<f64>> {
    let shape = &tiny.shape;
    let mut rows: Vec<Vec<f64>> = tokens
        .iter()
        .map(|&token| {
            let start = token as usize * shape.hidden;
            floats(&tiny.tensor("model.embed_tokens.weight")[start..start + shape.hidden])
        })
        .collect();
    for layer in 0..shape.layers {
        let attended = attention(tiny, layer, &rows);
        for (row, more) in rows.iter_mut().zip(attended) {
            add(row, &more);
        }
        for row in &mut rows {
            let more = feed_forward(tiny, layer, row);
            add(row, &more);
        }
    }
    let output = tiny.get("lm_head.weight").unwrap_or_else(|| tiny.tensor("model.embed_tokens.weight"));
    rows.iter().map(|row| product(output, &norm(row, tiny.tensor("model.norm.weight")))).collect()
}

fn attention(tiny: &Tiny, layer: usize, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let shape = &tiny.shape;
    let name = |part: &str| format!("model.layers.{layer}.{part}");
    let heads = |part: &str, row: &[f64], position: usize| -> Vec<Vec<f64>> {
        let normed = norm(row, tiny.tensor(&name("input_layernorm.weight")));
        let mut all = product(tiny.tensor(&name(&format!("self_attn.{part}_proj.weight"))), &normed);
        if let Some(bias) = tiny.get(&name(&format!("self_attn.{part}_proj.bias"))) {
            add(&mut all, &floats(bias));
        }
        let finish = |head: &[f64]| {
            if part == "v" {
                return head.to_vec();
            }
            let weights = tiny.get(&name(&format!("self_attn.{part}_norm.weight")));
            let head = weights.map_or_else(|| head.to_vec(), |weights| norm(head, weights));
            turned(&head, position, f64::from(shape.base))
        };
        all.chunks(shape.head_size).map(finish).collect()
    };
    let all = |part: &str| -> Vec<Vec<Vec<f64>>> {
        rows.iter().enumerate().map(|(position, row)| heads(part, row, position)).collect()
    };
    let (queries, keys, values) = (all("q"), all("k"), all("v"));
    let mut out = Vec::new();
    for position in 0..rows.len() {
        let mut mixed = Vec::new();
        for head in 0..shape.heads {
            let kv = head / (shape.heads / shape.kv_heads);
            let scores: Vec<f64> = (0..=position)
                .map(|at| dot(&queries[position][head], &keys[at][kv]) / (shape.head_size as f64).sqrt())
                .collect();
            let sum: f64 = scores.iter().map(|score| score.exp()).sum();
            let mut value = vec![0.0; shape.head_size];
            for (at, score) in scores.iter().enumerate() {
                let share = score.exp() / sum;
                add(&mut value, &values[at][kv].iter().map(|number| number * share).collect::<Vec<_>>());
            }
            mixed.extend(value);
        }
        out.push(product(tiny.tensor(&name("self_attn.o_proj.weight")), &mixed));
    }
    out
}

fn feed_forward(tiny: &Tiny, layer: usize, row: &[f64]) -> Vec<f64> {
    let weights = |part: &str| tiny.tensor(&format!("model.layers.{layer}.{part}.weight"));
    let normed = norm(row, weights("post_attention_layernorm"));
    let gates = product(weights("mlp.gate_proj"), &normed);
    let ups = product(weights("mlp.up_proj"), &normed);
    let gated: Vec<f64> = gates.iter().zip(ups).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
    product(weights("mlp.down_proj"), &gated)
}

/// j and j + half are turned together.
fn turned(head: &[f64], position: usize, base: f64) -> Vec<f64> {
    let half = head.len() / 2;
    let mut out = head.to_vec();
    for pair in 0..half {
        let angle = position as f64 * base.powf(-2.0 * pair as f64 / head.len() as f64);
        let (x, y) = (head[pair], head[pair + half]);
        out[pair] = x * angle.cos() - y * angle.sin();
        out[pair + half] = x * angle.sin() + y * angle.cos();
    }
    out
}

fn norm(row: &[f64], weights: &[f32]) -> Vec<f64> {
    let scale = 1.0 / (dot(row, row) / row.len() as f64 + 1e-5).sqrt();
    row.iter().zip(weights).map(|(number, weight)| number * scale * f64::from(*weight)).collect()
}

fn product(matrix: &[f32], input: &[f64]) -> Vec<f64> {
    let input = rounded(input);
    matrix.chunks(input.len()).map(|row| dot(&floats(row), &input)).collect()
}

/// Each block of 32 in steps of its largest number divided by 127.
fn rounded(row: &[f64]) -> Vec<f64> {
    let block = |numbers: &[f64]| {
        let most = numbers.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
        let step = most / 127.0;
        let round = |number: &f64| if step == 0.0 { 0.0 } else { (number / step).round_ties_even() * step };
        numbers.iter().map(round).collect::<Vec<_>>()
    };
    row.chunks(32).flat_map(block).collect()
}

fn floats(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().copied().map(f64::from).collect()
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(x, y)| x * y).sum()
}

fn add(row: &mut [f64], other: &[f64]) {
    for (number, other) in row.iter_mut().zip(other) {
        *number += other;
    }
}
