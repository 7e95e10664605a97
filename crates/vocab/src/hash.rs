//! A stable 128-bit hash of content.
//!
//! It identifies a vocabulary across processes and machines, and protects saved files against accidents. It consists of
//! two lanes of multiply-and-fold over eight-byte words, and does not resist an adversary who builds collisions on
//! purpose.

const KEYS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0xA24B_AED4_963E_E407, 0x8EBC_6AF0_9C88_C6E3];

#[derive(Debug, Clone)]
pub(crate) struct ContentHash {
    lanes: [u64; 2],
}

impl ContentHash {
    pub(crate) fn new() -> Self {
        Self { lanes: [KEYS[2], KEYS[3]] }
    }

    pub(crate) fn word(&mut self, word: u64) {
        self.lanes[0] = fold(self.lanes[0] ^ word, KEYS[0]).rotate_left(23);
        self.lanes[1] = fold(self.lanes[1].wrapping_add(word), KEYS[1]) ^ word;
    }

    /// Adds a byte string and its length, so that `ab, c` and `a, bc` differ.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (chunks, tail) = bytes.as_chunks::<8>();
        for &chunk in chunks {
            self.word(u64::from_le_bytes(chunk));
        }
        if !tail.is_empty() {
            let mut chunk = [0; 8];
            chunk[..tail.len()].copy_from_slice(tail);
            self.word(u64::from_le_bytes(chunk));
        }
    }

    pub(crate) fn finish(mut self) -> u128 {
        self.word(KEYS[2]);
        self.word(KEYS[3]);
        u128::from(self.lanes[0]) << 64 | u128::from(self.lanes[1])
    }
}

/// Computes a checksum of a large body of bytes. It detects accidents, such as a flipped bit, a lost page or a
/// truncation, but not a deliberate forgery.
///
/// PERF: four independent lanes, so that memory is the limit and not multiplication. `examples/measure.rs` of the
/// tokenizers crate shows how long loading a vocabulary takes.
pub fn checksum(body: &[u8]) -> u128 {
    let mut lanes = KEYS;
    let (blocks, tail) = body.as_chunks::<32>();
    for block in blocks {
        mix(&mut lanes, block);
    }
    close(lanes, body.len(), tail)
}

/// Computes the [`checksum`]s of two bodies.
///
/// PERF: each lane waits for its previous multiplication, so two bodies take hardly longer than one.
pub fn checksum_pair(left: &[u8], right: &[u8]) -> [u128; 2] {
    let mut lanes = [KEYS; 2];
    let ((left_blocks, left_tail), (right_blocks, right_tail)) =
        (left.as_chunks::<32>(), right.as_chunks::<32>());
    for (left, right) in left_blocks.iter().zip(right_blocks) {
        mix(&mut lanes[0], left);
        mix(&mut lanes[1], right);
    }
    let both = left_blocks.len().min(right_blocks.len());
    left_blocks[both..].iter().for_each(|block| mix(&mut lanes[0], block));
    right_blocks[both..].iter().for_each(|block| mix(&mut lanes[1], block));
    [close(lanes[0], left.len(), left_tail), close(lanes[1], right.len(), right_tail)]
}

#[inline]
fn mix(lanes: &mut [u64; 4], block: &[u8; 32]) {
    for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        // An invertible step loses nothing, so every single change reaches the end.
        *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(29);
    }
}

fn close(lanes: [u64; 4], length: usize, tail: &[u8]) -> u128 {
    let mut hash = ContentHash::new();
    for lane in lanes {
        hash.word(lane);
    }
    hash.word(length as u64);
    hash.bytes(tail);
    hash.finish()
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(parts: &[&[u8]]) -> u128 {
        let mut hash = ContentHash::new();
        for part in parts {
            hash.bytes(part);
        }
        hash.finish()
    }

    #[test]
    fn a_pair_is_summed_like_each_of_the_two() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
        for (left, right) in [(0, 0), (5, 700), (700, 5), (320, 320), (1000, 999), (64, 65)] {
            let (left, right) = (&bytes[..left], &bytes[1000 - right..]);
            assert_eq!(checksum_pair(left, right), [checksum(left), checksum(right)]);
        }
    }

    #[test]
    fn value_is_fixed_forever() {
        // Saved files and caches depend on it: if this fails, the format's version must change.
        assert_eq!(format!("{:032x}", hash(&[b"maskwright"])), "2a3df848dca66eec6a56130a3765cb29");
    }

    #[test]
    fn every_single_bit_and_boundary_matters() {
        let text = [0_u8; 24];
        let plain = hash(&[&text]);
        for bit in 0..24 * 8 {
            let mut changed = text;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash(&[&changed]), plain, "bit {bit}");
        }
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_ne!(hash(&[b"a"]), hash(&[b"a\0"]));
    }
}
