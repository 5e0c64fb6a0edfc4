package keys

// SectionExamples are for the test that writes each of them into a configuration, which must take it.
var SectionExamples = sectionExamples
