//! Byte codecs.
