//! Least and greatest value of one leaf column, batch by batch.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArrayType};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};

/// Least and greatest value seen so far; none if no row had a value.
pub(super) type Range<T> = Option<(T, T)>;

#[derive(Debug)]
pub(super) enum Bounds {
    /// No bounds are kept for this type.
    None,
    Integer(Range<i64>),
    Decimal {
        scale: i8,
        range: Range<i128>,
    },
    /// Values of a `float` are widened, which is exact and keeps their order.
    Float {
        range: Range<f64>,
        has_nan: bool,
    },
    Date(Range<i32>),
    /// Microseconds since the epoch.
    Timestamp {
        utc: bool,
        range: Range<i64>,
    },
    String(Range<String>),
}

impl Bounds {
    pub(super) fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Self::Integer(None)
            }
            DataType::Decimal128(_, scale) => Self::Decimal {
                scale: *scale,
                range: None,
            },
            DataType::Float32 | DataType::Float64 => Self::Float {
                range: None,
                has_nan: false,
            },
            DataType::Date32 => Self::Date(None),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => Self::Timestamp {
                utc: zone.is_some(),
                range: None,
            },
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::String(None),
            _ => Self::None,
        }
    }

    /// Sees the values of `array` where `nulls` is valid. An array of another type than the
    /// column's takes the bounds away.
    pub(super) fn update(&mut self, array: &dyn Array, nulls: Option<&NullBuffer>) {
        if self.see(array, nulls).is_none() {
            *self = Self::None;
        }
    }

    fn see(&mut self, array: &dyn Array, nulls: Option<&NullBuffer>) -> Option<()> {
        match self {
            Self::None => {}
            Self::Integer(range) => match array.data_type() {
                DataType::Int8 => integers::<Int8Type>(range, array, nulls)?,
                DataType::Int16 => integers::<Int16Type>(range, array, nulls)?,
                DataType::Int32 => integers::<Int32Type>(range, array, nulls)?,
                _ => integers::<Int64Type>(range, array, nulls)?,
            },
            Self::Decimal { scale, range } => {
                let array = array.as_primitive_opt::<Decimal128Type>()?;
                if array.scale() != *scale {
                    return None;
                }
                for_each(array, nulls, |value| widen(range, value));
            }
            Self::Float { range, has_nan } => match array.data_type() {
                DataType::Float32 => {
                    let array = array.as_primitive_opt::<Float32Type>()?;
                    for_each(array, nulls, |value| {
                        float(range, has_nan, f64::from(value));
                    });
                }
                _ => {
                    let array = array.as_primitive_opt::<Float64Type>()?;
                    for_each(array, nulls, |value| float(range, has_nan, value));
                }
            },
            Self::Date(range) => {
                let array = array.as_primitive_opt::<Date32Type>()?;
                for_each(array, nulls, |value| widen(range, value));
            }
            Self::Timestamp { range, .. } => {
                let array = array.as_primitive_opt::<TimestampMicrosecondType>()?;
                for_each(array, nulls, |value| widen(range, value));
            }
            Self::String(range) => match array.data_type() {
                DataType::LargeUtf8 => strings(range, array.as_string_opt::<i64>()?, nulls),
                DataType::Utf8View => strings(range, array.as_string_view_opt()?, nulls),
                _ => strings(range, array.as_string_opt::<i32>()?, nulls),
            },
        }
        Some(())
    }
}

fn integers<T>(range: &mut Range<i64>, array: &dyn Array, nulls: Option<&NullBuffer>) -> Option<()>
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    for_each(array.as_primitive_opt::<T>()?, nulls, |value| {
        widen(range, i64::from(value));
    });
    Some(())
}

fn for_each<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    nulls: Option<&NullBuffer>,
    mut see: impl FnMut(T::Native),
) {
    let values = array.values();
    match nulls {
        Some(nulls) => nulls.valid_indices().for_each(|row| see(values[row])),
        None => values.iter().for_each(|value| see(*value)),
    }
}

fn widen<T: Ord + Copy>(range: &mut Range<T>, value: T) {
    match range {
        None => *range = Some((value, value)),
        Some((min, max)) => {
            *min = (*min).min(value);
            *max = (*max).max(value);
        }
    }
}

/// The total order, so that `-0.0` is below `0.0`; a NaN is only noted.
fn float(range: &mut Range<f64>, has_nan: &mut bool, value: f64) {
    if value.is_nan() {
        *has_nan = true;
        return;
    }
    match range {
        None => *range = Some((value, value)),
        Some((min, max)) => {
            if value.total_cmp(min).is_lt() {
                *min = value;
            }
            if value.total_cmp(max).is_gt() {
                *max = value;
            }
        }
    }
}

/// By UTF-8 bytes, which is the order of code points. Only the extremes of a batch are copied.
fn strings<'a>(
    range: &mut Range<String>,
    array: impl StringArrayType<'a>,
    nulls: Option<&NullBuffer>,
) {
    let mut extremes: Option<(&str, &str)> = None;
    let mut see = |value: &'a str| match &mut extremes {
        None => extremes = Some((value, value)),
        Some((min, max)) => {
            if value < *min {
                *min = value;
            }
            if value > *max {
                *max = value;
            }
        }
    };
    match nulls {
        Some(nulls) => nulls.valid_indices().for_each(|row| see(array.value(row))),
        None => (0..array.len()).for_each(|row| see(array.value(row))),
    }
    let Some((least, greatest)) = extremes else {
        return;
    };
    match range {
        None => *range = Some((least.to_owned(), greatest.to_owned())),
        Some((min, max)) => {
            if least < min.as_str() {
                *min = least.to_owned();
            }
            if greatest > max.as_str() {
                *max = greatest.to_owned();
            }
        }
    }
}
