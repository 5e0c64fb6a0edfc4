package shard

// Match says whether the glob fits the whole name. * stands for any run of characters, dots included; ? stands for
// exactly one; every other character stands for itself.
func Match(glob, name string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		switch {
		case i < len(glob) && glob[i] == '*':
			star, mark = i, j
			i++
		case i < len(glob) && (glob[i] == '?' || glob[i] == name[j]):
			i++
			j++
		case star >= 0: // let the last star swallow one more character, and try again
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(glob) && glob[i] == '*' {
		i++
	}
	return i == len(glob)
}
