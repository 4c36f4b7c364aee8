#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| taipan_fuzz::watch(bytes));
