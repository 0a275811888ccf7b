package main

// nearest is the name that takes the fewest edits to become word, empty where
// even that one takes more than two.
func nearest(word string, names []string) string {
	best, fewest := "", 3
	for _, name := range names {
		if n := edits(word, name); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// edits counts the letters to insert, drop or replace to get from a to b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
