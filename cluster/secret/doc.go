// Package secret makes the cluster's keys out of files that an operator places on
// each node: one shared secret, from which everything follows, or certificates of
// a private authority for the links.
//
// Of a secret file's lines the first is used for sending and all are accepted, so
// a secret is changed in three steps without an interruption: add the new one
// below the old one on all nodes, put it first on all nodes, take the old one
// away. Each node sees a changed file within a few seconds; connections that are
// there are kept.
//
// From each secret follow, by HKDF-SHA256, a gossip key (AES-256) and an ed25519
// identity for TLS. Whoever has the secret has the identity: it says "a node of
// this cluster", not which one.
//
// Ownership: Run polls the files in the caller's goroutine; what it found is
// swapped in at once, and all other methods may be called at any time. What is
// bounded: a file (64 KiB), secrets (8), their length (16 to 1,024 bytes). Logs
// and errors name key ids and line numbers, never a secret.
package secret
