//! A minimal reader of protocol buffers, for SentencePiece models.
//!
//! A message is a list of fields: a varint with the field's number and its wire type, then the value. Nothing is copied
//! and nothing recurses; a length beyond the end of the message is an error.

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// Returns a number; negative ones are stored as their two's complement.
    pub(crate) fn int(self) -> Option<i64> {
        if let Self::Varint(value) = self { Some(value.cast_signed()) } else { None }
    }

    pub(crate) fn float(self) -> Option<f32> {
        if let Self::Fixed32(bytes) = self { Some(f32::from_le_bytes(bytes)) } else { None }
    }
}

/// The fields of a message, in order; after an error there are no more.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Value<'a>), &'static str> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.array()?),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| SHORT)?;
                let (bytes, rest) = self.0.split_at_checked(len).ok_or(SHORT)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(self.array()?),
            _ => return Err("a field is of an unknown type"),
        };
        Ok((tag >> 3, value))
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(SHORT)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has too many bytes")
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (head, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*head)
    }
}

const SHORT: &str = "it ends too early";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8]) -> Result<Vec<(u64, Value<'_>)>, &'static str> {
        Fields(message).collect()
    }

    #[test]
    fn every_wire_type() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1D, 0, 0, 0x80, 0x3F, 0x21, 1, 0, 0, 0, 0, 0, 0, 0];
        let fields = read(&message).unwrap();
        assert_eq!(fields[0], (1, Value::Varint(150)));
        assert_eq!(fields[1], (2, Value::Bytes(b"hi")));
        assert_eq!(fields[2].1.float(), Some(1.0));
        assert_eq!(fields[3], (4, Value::Fixed64([1, 0, 0, 0, 0, 0, 0, 0])));
        assert_eq!(Value::Varint(u64::MAX).int(), Some(-1));
    }

    #[test]
    fn broken_messages_are_errors() {
        assert_eq!(read(&[0x12, 0x05, b'h']), Err("it ends too early"));
        assert_eq!(read(&[0x08]), Err("it ends too early"));
        assert_eq!(read(&[0x0B]), Err("a field is of an unknown type"));
        assert_eq!(read(&[0xFF; 12]), Err("a number has too many bytes"));
        assert!(read(&[0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).is_err());
    }
}
