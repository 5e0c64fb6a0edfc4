// Package datapage makes the page of `fluentps data --html`: what a data set holds, so that a wrong label, a column that numbers the rows
// or pictures on their side are seen before an hour of training. It is pure: what was found goes in, a page comes out.
package datapage

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/png"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/page"
	"fluentps/internal/show/report/plot"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/profile"
)

// Verb is what writes these pages: see page.Mark.
const Verb = "data"

// Source is what a page is made of.
type Source struct {
	Title   string
	Report  dataset.Report
	Profile *profile.Profile
	Build   string // of the program
}

// view is what the template shows.
type view struct {
	Title, Kind, Build string
	Style              template.CSS
	Verdict            []string
	Notes, Found       []string
	Figures            []figure
	FiguresNote        string
	Sheets             []sheet
	Tables             []*table
}

type figure struct {
	ID  string
	SVG template.HTML
}

type sheet struct {
	ID, Title, Note string
	Strips          []strip
}

// strip is a picture of Width pixels as the page shows it.
type strip struct {
	Label, Alt string
	Data       template.URL
	Width      int
}

type table struct {
	ID, Caption string
	Columns     []column
	Rows        [][]cell
}

// column is the head of a column; Wide is for page.Parse.
type column struct {
	Head       string
	Text, Wide bool
}

type cell struct{ Text, Link string }

var pageTemplate = page.Parse(Verb, body, true)

// Make makes the page.
func Make(s *Source) ([]byte, error) {
	v := &view{Title: foreign.Text(s.Title), Kind: "Data set", Build: foreign.Visible(s.Build), Style: template.CSS(plot.Style()),
		Verdict: Sentences(s), Notes: visible(s.Report.Notes), Found: visible(s.Report.Found)}
	for _, scene := range charts(s) {
		v.Figures = append(v.Figures, figure{scene.ID, template.HTML(scene.SVG())})
	}
	switch n := s.Profile.Left; {
	case n > 0 && s.Profile.Columns == nil:
		v.FiguresNote = fmt.Sprintf("%d columns are too many to look at one by one.", n)
	case n > 0:
		v.FiguresNote = fmt.Sprintf("%d more columns are not drawn: these tell the most alone.", n)
	}
	for i := range s.Profile.Sheets {
		sheet, err := paint(&s.Profile.Sheets[i])
		if err != nil {
			return nil, err
		}
		v.Sheets = append(v.Sheets, sheet)
	}
	v.Tables = tables(s)
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return []byte(foreign.Visible(b.String())), nil
}

// visible are lines of which no text is invisible.
func visible(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, foreign.Visible(line))
	}
	return all
}

// pixelsLeast is the least width of a picture on the page: small ones are shown with larger pixels.
const pixelsLeast = 64

func paint(of *profile.Sheet) (sheet, error) {
	s := sheet{ID: of.ID, Title: of.Title, Note: of.Note}
	for _, row := range of.Strips {
		var b bytes.Buffer
		if err := png.Encode(&b, row.Picture); err != nil {
			return s, fmt.Errorf("data: %w", err)
		}
		width := row.Picture.Bounds().Dx()
		label := foreign.Text(row.Label)
		s.Strips = append(s.Strips, strip{Label: label, Alt: fmt.Sprintf("%d pictures: %s, %s", row.Count, of.Title, label),
			Data:  template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())),
			Width: width * max(1, (pixelsLeast*row.Count+width-1)/max(1, width))})
	}
	return s, nil
}

const body = `<body>
<a class="skip" href="#figures">Skip to the figures</a>
<header>
<p class="kind">{{.Kind}}</p>
<h1>{{.Title}}</h1>
<ul class="verdict">{{range .Verdict}}
<li>{{.}}</li>{{end}}
</ul>
<nav aria-label="Parts of this page">{{if .Sheets}}<a href="#pictures">Pictures</a>{{end}}{{if .Figures}}<a href="#figures">Figures</a>{{end}}<a href="#tables">Tables</a></nav>
</header>
<main>
{{with .Notes}}<div class="note" role="note"><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></div>
{{end}}{{with .Found}}<section aria-label="Found in the files"><h2>Found in the files</h2><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></section>
{{end}}{{with .Sheets}}<section id="pictures"><h2>Pictures</h2>
{{range .}}<h3 id="sheet-{{.ID}}">{{.Title}}</h3>
{{with .Note}}<p class="muted">{{.}}</p>{{end}}
<div class="figures">
{{range .Strips}}<figure style="border:0;padding:2px 0"><figcaption>{{.Label}}</figcaption><img src="{{.Data}}" alt="{{.Alt}}" width="{{.Width}}" style="max-width:100%;height:auto;image-rendering:pixelated"></figure>
{{end}}</div>{{end}}</section>
{{end}}{{if .Figures}}<section id="figures"><h2>Figures</h2>
<div class="figures">{{range .Figures}}
<figure id="figure-{{.ID}}">{{.SVG}}</figure>{{end}}
</div>
{{with .FiguresNote}}<p class="muted">{{.}}</p>{{end}}
</section>
{{end}}<section id="tables"><h2>Tables</h2>
{{range .Tables}}{{template "table" .}}
{{end}}</section>
</main>
<footer>{{with .Build}}Made by fluentps {{.}}. {{end}}This file loads nothing and holds no script.</footer>
</body>
</html>
`
