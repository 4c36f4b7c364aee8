#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    taipan_fuzz::bytes("binary", bytes);
    taipan_fuzz::bytes("binary", &taipan_fuzz::sealed(bytes));
});
