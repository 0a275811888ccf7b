module kvca/deploy/release

go 1.26
