//! Converts the formats of weights in files to floats.
//!
//! A GGUF file gives the format of each tensor as a number. Apart from plain floats, all formats consist of blocks:
//! packed small integers, and the factors to multiply them with. Here each format is a function from a block and an
//! index to a float, written for readability: it is only used while a model is loaded.
//!
//! | format | block | a number is |
//! |---|---|---|
//! | `Q4_0`, `Q5_0` | 32 | factor · (integer − half of the range) |
//! | `Q4_1`, `Q5_1` | 32 | factor · integer + offset |
//! | `Q8_0` | 32 | factor · integer |
//! | `Q2_K`, `Q4_K`, `Q5_K` | 256, in groups of 16 or 32 | factor · scale of the group · integer − factor · offset of the group |
//! | `Q3_K`, `Q6_K` | 256, in groups of 16 | factor · scale of the group · (integer − half of the range) |

use half::{bf16, f16};

/// A format of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl Format {
    /// Returns the format with this number in ggml.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// Returns the number of values in a block.
    pub(crate) fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Returns the size of a block in bytes.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 2 + 16,
            Self::Q4_1 => 4 + 16,
            Self::Q5_0 => 2 + 4 + 16,
            Self::Q5_1 => 4 + 4 + 16,
            Self::Q8_0 => 2 + 32,
            Self::Q2K => 16 + 64 + 4,
            Self::Q3K => 32 + 64 + 12 + 2,
            Self::Q4K => 4 + 12 + 128,
            Self::Q5K => 4 + 12 + 32 + 128,
            Self::Q6K => 128 + 64 + 16 + 2,
        }
    }

    /// Returns the size of this number of values in bytes, if they form whole blocks.
    pub(crate) fn bytes_of(self, elements: usize) -> Option<usize> {
        let is_whole = elements.is_multiple_of(self.block_len());
        (elements / self.block_len()).checked_mul(self.block_bytes()).filter(|_| is_whole)
    }

    /// Converts whole blocks to floats; an incomplete block at the end is ignored.
    pub(crate) fn floats(self, bytes: &[u8]) -> Vec<f32> {
        let mut floats = Vec::with_capacity(bytes.len() / self.block_bytes() * self.block_len());
        for block in bytes.chunks_exact(self.block_bytes()) {
            match self {
                Self::F32 => floats.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
                Self::F16 => floats.push(half_at(block, 0)),
                Self::Bf16 => floats.push(bf16::from_le_bytes([block[0], block[1]]).to_f32()),
                Self::Q4_0 => small(&mut floats, half_at(block, 0), -8.0, 0.0, None, &block[2..]),
                Self::Q4_1 => {
                    small(&mut floats, half_at(block, 0), 0.0, half_at(block, 2), None, &block[4..]);
                }
                Self::Q5_0 => {
                    small(&mut floats, half_at(block, 0), -16.0, 0.0, Some(&block[2..6]), &block[6..]);
                }
                Self::Q5_1 => {
                    small(
                        &mut floats,
                        half_at(block, 0),
                        0.0,
                        half_at(block, 2),
                        Some(&block[4..8]),
                        &block[8..],
                    );
                }
                Self::Q8_0 => {
                    let factor = half_at(block, 0);
                    floats.extend(block[2..].iter().map(|&byte| factor * f32::from(byte.cast_signed())));
                }
                Self::Q2K => floats.extend((0..256).map(|at| two_bits(block, at))),
                Self::Q3K => floats.extend((0..256).map(|at| three_bits(block, at))),
                Self::Q4K => floats.extend((0..256).map(|at| four_bits(block, at))),
                Self::Q5K => floats.extend((0..256).map(|at| five_bits(block, at))),
                Self::Q6K => floats.extend((0..256).map(|at| six_bits(block, at))),
            }
        }
        floats
    }
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Adds 32 values: the lower halves of 16 bytes, then the upper halves; a fifth bit may be stored elsewhere.
fn small(floats: &mut Vec<f32>, factor: f32, shift: f32, offset: f32, fifth: Option<&[u8]>, halves: &[u8]) {
    for at in 0..32 {
        let low = halves[at % 16] >> (at / 16 * 4) & 15;
        let high = fifth.map_or(0, |bits| bits[at / 8] >> (at % 8) & 1);
        floats.push((f32::from(low | high << 4) + shift) * factor + offset);
    }
}

/// Returns two bits of the value at an index: in each half of the block, 32 bytes hold four values each.
fn two_bits_of(bytes: &[u8], at: usize) -> u8 {
    bytes[at / 128 * 32 + at % 32] >> (at % 128 / 32 * 2) & 3
}

/// Returns four bits of the value at an index: 32 bytes hold the values of two groups of 32.
fn four_bits_of(bytes: &[u8], at: usize) -> u8 {
    bytes[at / 64 * 32 + at % 32] >> (at % 64 / 32 * 4) & 15
}

fn two_bits(block: &[u8], at: usize) -> f32 {
    let (scales, rest) = block.split_at(16);
    let scale = scales[at / 16];
    let (factor, least) = (half_at(rest, 64), half_at(rest, 66));
    factor * f32::from(scale & 15) * f32::from(two_bits_of(rest, at)) - least * f32::from(scale >> 4)
}

fn three_bits(block: &[u8], at: usize) -> f32 {
    let (high, rest) = block.split_at(32);
    let (low, rest) = rest.split_at(64);
    let group = at / 16;
    // The scales of the 16 groups have six bits: four in a half of eight bytes, two in the last four bytes.
    let scale = rest[group % 8] >> (group / 8 * 4) & 15 | (rest[8 + group % 4] >> (group / 4 * 2) & 3) << 4;
    let whole = two_bits_of(low, at) | (high[at % 32] >> (at / 32) & 1) << 2;
    half_at(rest, 12) * (f32::from(scale) - 32.0) * (f32::from(whole) - 4.0)
}

/// Returns the scale and the offset of a group of 32, six bits each, packed into twelve bytes.
fn scale_and_least(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, least) = if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        (
            packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
            packed[group + 4] >> 4 | packed[group] >> 6 << 4,
        )
    };
    (f32::from(scale), f32::from(least))
}

fn four_bits(block: &[u8], at: usize) -> f32 {
    let (scale, least) = scale_and_least(&block[4..16], at / 32);
    half_at(block, 0) * scale * f32::from(four_bits_of(&block[16..], at)) - half_at(block, 2) * least
}

fn five_bits(block: &[u8], at: usize) -> f32 {
    let (scale, least) = scale_and_least(&block[4..16], at / 32);
    let whole = four_bits_of(&block[48..], at) | (block[16 + at % 32] >> (at / 32) & 1) << 4;
    half_at(block, 0) * scale * f32::from(whole) - half_at(block, 2) * least
}

fn six_bits(block: &[u8], at: usize) -> f32 {
    let (low, rest) = block.split_at(128);
    let (high, rest) = rest.split_at(64);
    // In each half of the block, 64 bytes hold two values each: the first 64 in their lower halves, the others in their
    // upper halves.
    let low = low[at / 128 * 64 + at % 64] >> (at % 128 / 64 * 4) & 15;
    let whole = low | two_bits_of(high, at) << 4;
    half_at(rest, 16) * f32::from(rest[at / 16].cast_signed()) * (f32::from(whole) - 32.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_sign_loss, reason = "no number is negative")]

    use super::*;

    /// Checksums of the results of the Python package `gguf` of llama.cpp, version 0.19.0, for the same bytes.
    const EXPECTED: [(Format, u64); 13] = [
        (Format::F32, 0xD85D_4BBF_4EB3_6F48),
        (Format::F16, 0xE1B3_F396_63D9_0310),
        (Format::Bf16, 0x6B45_9918_663A_378D),
        (Format::Q4_0, 0x3FBF_2FB2_5092_E53C),
        (Format::Q4_1, 0xD318_0914_7561_1EEC),
        (Format::Q5_0, 0x7A0C_6D00_57D4_60F8),
        (Format::Q5_1, 0x20D1_905C_CD79_24D4),
        (Format::Q8_0, 0x379D_575B_EF5F_7F44),
        (Format::Q2K, 0x8177_4705_549F_49E4),
        (Format::Q3K, 0xA3D4_6451_96D7_82E4),
        (Format::Q4K, 0x43DC_459F_A526_E438),
        (Format::Q5K, 0x8926_7E6F_E290_81C8),
        (Format::Q6K, 0x2FD2_3CE8_22BA_7C9C),
    ];

    #[test]
    fn every_format_is_read_as_llama_cpp_reads_it() {
        for (format, expected) in EXPECTED {
            let bytes = sample(format);
            let floats = format.floats(&bytes);
            assert_eq!(format.bytes_of(floats.len()), Some(bytes.len()));
            assert_eq!(checksum(&floats), expected, "{format:?}");
        }
        assert_eq!(Format::Q4K.bytes_of(255), None);
        assert_eq!(Format::Q8_0.bytes_of(usize::MAX - 31), None);
    }

    /// Returns random bytes, in which the factors are ordinary numbers.
    fn sample(format: Format) -> Vec<u8> {
        let rng = crate::sampler::rng::Rng::new(Some(8), 0);
        let mut bytes: Vec<u8> =
            (0..format.block_bytes() as u64 * 5).map(|at| (rng.at(at) * 256.0) as u8).collect();
        let halves: &[usize] = match format {
            Format::F32 => &[],
            Format::F16 | Format::Bf16 | Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
            Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
            Format::Q2K => &[80, 82],
            Format::Q3K => &[108],
            Format::Q6K => &[208],
        };
        for block in bytes.chunks_exact_mut(format.block_bytes()) {
            for &at in halves {
                // From 1 to 2 as f16.
                block[at + 1] = 0x3C | block[at + 1] & 3;
            }
            if format == Format::F32 {
                block[3] = 0x3F;
            }
        }
        bytes
    }

    /// Returns a checksum of floats, in steps of 2^−12, so that the order of operations does not matter.
    fn checksum(floats: &[f32]) -> u64 {
        floats.iter().fold(0, |sum, float| {
            (sum ^ ((float * 4096.0).round() as i64).cast_unsigned()).wrapping_mul(0x0000_0100_0000_01B3)
        })
    }
}
