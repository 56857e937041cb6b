//! Hash slots of a Redis cluster, from its specification ("Hash tags", "Keys distribution model").

/// The slot of a key: CRC16 (XMODEM) modulo 16384 of what the first pair of braces holds, or of all of it.
pub(crate) fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(tag, _)| tag);
    crc16(if tag.is_empty() { key } else { tag }.as_bytes()) % 16_384
}

fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for byte in bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
    }
    crc
}

#[test]
fn slots_are_those_of_the_specification() {
    assert_eq!(crc16(b"123456789"), 0x31c3);
    assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
    assert_eq!(slot("foo{}{bar}"), crc16(b"foo{}{bar}") % 16_384);
    assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
}
