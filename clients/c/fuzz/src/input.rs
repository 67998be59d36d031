//! The bytes that libFuzzer gives, read as numbers. There are zeros after their end.

pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `length` bytes, fewer at the end.
    pub(crate) fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.bytes(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// True for one of 16 bytes: mistakes must be rare, or no sequence of calls gets far.
    pub(crate) fn rarely(&mut self) -> bool {
        self.byte() >> 4 == 15
    }

    /// A parameter: one that is often allowed, or any double.
    pub(crate) fn parameter(&mut self) -> f64 {
        let choice = self.byte();
        match choice {
            0..128 => f64::from(choice % 32 + 1) / 8.0,
            128..160 => 0.0,
            160..192 => 2f64.powi(i32::from(choice) - 176),
            192..224 => 10f64.powi(-(i32::from(choice) - 191)),
            _ => f64::from_bits(self.u64()),
        }
    }
}
