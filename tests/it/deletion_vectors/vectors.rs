//! Deletion vectors written by hand: bytes, checksum and base 85 as the protocol describes them.

use roaring::RoaringTreemap;
use serde_json::{Value, json};

/// The vector that hides `rows`, without its length and checksum.
pub fn bytes(rows: &[u64]) -> Vec<u8> {
    let mut bytes = 1_681_511_377_u32.to_le_bytes().to_vec();
    let rows: RoaringTreemap = rows.iter().copied().collect();
    rows.serialize_into(&mut bytes).expect("serialised");
    bytes
}

/// A file that holds `vectors` one after the other, and where each of them starts.
pub fn file(vectors: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let mut file = vec![1];
    let mut starts = Vec::new();
    for vector in vectors {
        starts.push(file.len());
        file.extend(u32::try_from(vector.len()).expect("short").to_be_bytes());
        file.extend(vector);
        file.extend(crc32(vector).to_be_bytes());
    }
    (file, starts)
}

/// The descriptor of a vector in the log itself.
pub fn inline(rows: &[u64]) -> Value {
    let bytes = bytes(rows);
    json!({
        "storageType": "i", "pathOrInlineDv": base85(&bytes), "sizeInBytes": bytes.len(),
        "cardinality": rows.len(),
    })
}

/// The descriptor of a vector at `start` of the file that `path` names.
pub fn stored(storage_type: &str, path: &str, start: usize, rows: &[u64]) -> Value {
    json!({
        "storageType": storage_type, "pathOrInlineDv": path, "offset": start,
        "sizeInBytes": bytes(rows).len(), "cardinality": rows.len(),
    })
}

/// Z85 of ZeroMQ's RFC 32, the last group filled up with zeros.
pub fn base85(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 85] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let mut text = String::new();
    for group in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes(four);
        for power in [4, 3, 2, 1, 0] {
            let digit = number / 85_u32.pow(power) % 85;
            text.push(char::from(DIGITS[digit as usize]));
        }
    }
    text
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn the_writer_agrees_with_values_of_others() {
    // From RFC 32 and from the protocol's example of a relative path.
    assert_eq!(
        base85(&[0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]),
        "HelloWorld"
    );
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
}
