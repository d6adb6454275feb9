//! What a program that always has data writes into a send buffer: as much as Linux takes
//! (`tcp_sendmsg_locked`, `sk_stream_write_space`), which is what such a buffer lets be in flight.
//!
//! While less than the buffer is in use the kernel takes the next piece of up to 64 KiB truncated,
//! also beyond the buffer's size. Once it is full, the writer sleeps until no more than two thirds
//! are in use. So a small buffer holds more than its size, and a transfer goes in strokes of
//! 64 KiB.
//! Left out: what the kernel's own structures take of the buffer.

use super::TcpModel;

/// Payload of a piece at the most: 64 KiB less room for headers (`tcp_xmit_size_goal`).
const PIECE_BYTES_MAX: u64 = 65_535 - 320;

/// A send buffer, counted in full segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// Size of the buffer, segments.
    room: f64,
    /// Segments that are taken at once.
    piece: u64,
    /// Segments that were written until now.
    written: u64,
}

impl SendBuffer {
    /// Full send buffer of a TCP; none where nothing bounds it.
    pub(super) fn from_tcp(tcp: &TcpModel) -> Option<Self> {
        let mss = u64::from(tcp.mss_bytes.max(1));
        let piece = if tcp.offload { (PIECE_BYTES_MAX / mss).max(1) } else { 1 };
        // However small, it takes a piece.
        let room = (tcp.send_buffer_bytes? as f64 / mss as f64).max(1.0);
        let mut buffer = Self { room, piece, written: 0 };
        buffer.fill_free_room(0);
        Some(buffer)
    }

    /// Segments that were written until now.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// The segments below `first` were acknowledged: a writer that is woken writes on.
    pub(super) fn acknowledged(&mut self, first: u64) {
        if 1.5 * self.segments_used(first) <= self.room {
            self.fill_free_room(first);
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    fn fill_free_room(&mut self, first: u64) {
        let pieces = ((self.room - self.segments_used(first)) / self.piece as f64).ceil() as u64;
        self.written = self.written.saturating_add(pieces.saturating_mul(self.piece));
    }

    fn segments_used(&self, first: u64) -> f64 {
        self.written.saturating_sub(first) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_fills_it_whole_pieces_at_a_time_and_wakes_at_two_thirds() {
        // 100 kB are 69.1 segments, a piece is 45 (65,215 / 1448): two pieces.
        let tcp = TcpModel { send_buffer_bytes: Some(100_000), ..TcpModel::TODAY };
        let mut buffer = SendBuffer::from_tcp(&tcp).expect("bounded");
        assert_eq!(buffer.written(), 90);
        // 47 in use are above two thirds of 69.1, 46 are not.
        buffer.acknowledged(43);
        assert_eq!(buffer.written(), 90);
        buffer.acknowledged(44);
        assert_eq!(buffer.written(), 135);
        let single = TcpModel { offload: false, ..tcp };
        assert_eq!(SendBuffer::from_tcp(&single).expect("bounded").written(), 70);
        assert!(SendBuffer::from_tcp(&TcpModel::TODAY).is_none());
        // What a record may say, without an end of counting.
        let of = |bytes| SendBuffer::from_tcp(&TcpModel { send_buffer_bytes: Some(bytes), ..tcp });
        assert_eq!(of(0).map(|buffer| buffer.written()), Some(45));
        assert!(of(u64::MAX).is_some_and(|buffer| buffer.written() > 1 << 50));
    }
}
