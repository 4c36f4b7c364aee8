//! Checking by timestamps, against a naive replay of the definition.

mod delivered;
mod drawn;
mod evidence;
mod held;
mod naive;
mod offline;
mod online;
mod placements;
mod planted;
mod sharded;
mod shards;
mod streamed;
mod unknown;
