// Package keys is the table of the keys of the YAML: path, limits, words, default and text of each, and how its value is read and written.
// Loading, check, explain, completion and the schema read it.
//
// A key of the YAML is a field of a struct, in the package that uses the key. A constructor has the defaults. The tags of a field are:
//
//	yaml    its path in its section. required: no default, must be set; omitempty: no default, the zero value is unset
//	min, max, above, below  the limits of a number or of each item of a list, as in the YAML
//	values  the legal words, separated by commas; @name: the words of lists[name]
//	form    the form of a text, a key of textForms
//	items   the fewest items of a list
//	unit    bytes: a size; worker: the index of a worker, or "*"
//	when    key=words, with words as in values: the key exists only if that key has one of them. That key comes earlier, in the same or
//	        an outer section
//	as      float32: the arithmetic that the number ends in, which must hold it
//	idle    of a number of a scheme: what it does nothing beyond: lead: the lead that the length of the run allows; pushes: those of the
//	        run; workers: TEXT: their number, where TEXT is what happens then
//	doc     what the key is for
//
// The order of the fields is that of the resolved form.
package keys
