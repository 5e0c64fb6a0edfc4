// Package page has what the pages of the program have in common: their head with the style sheet, their tables, and the rule that they hold
// no script and load nothing.
package page

import "html/template"

// Mark is in every page that a verb of the program writes, so that such a page may be replaced and a file of the user is not.
func Mark(verb string) string { return `<meta name="generator" content="fluentps ` + verb + `">` }

// Parse makes the template of the pages of a verb. Its data has Title, Kind and Style, a template.CSS; the body may show tables by
// {{template "table" .}}: each has ID, Caption, Columns with Head, Text and Wide, and Rows of cells with Text and Link. pictures says
// whether the page holds pictures, as data of its own. It panics if the body is no template.
func Parse(verb, body string, pictures bool) *template.Template {
	images := ""
	if pictures {
		images = "img-src data:; "
	}
	return template.Must(template.Must(template.New(verb).Parse(table)).Parse(head(verb, images) + body))
}

// head forbids scripts and requests, whatever a run or a file has brought in.
func head(verb, images string) string {
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; ` + images + `style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + Mark(verb) + `
<meta name="referrer" content="no-referrer">
<title>{{.Title}} – {{.Kind}}</title>
<style>
{{.Style}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",Arial,sans-serif;overflow-wrap:anywhere}
main,header,footer{max-width:1360px;margin:0 auto;padding:0 16px}
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0 .5em}h2{font-size:1.25rem;margin:2em 0 .6em}h3{font-size:1rem;margin:1.2em 0 .4em}
a{color:var(--s0)}
.kind{color:var(--muted);margin:1.6em 0 0}
.verdict{max-width:46em;margin:0;padding:0;list-style:none}.verdict li{margin:.35em 0}.verdict li:first-child{font-size:1.2rem;line-height:1.4;font-weight:600;margin-bottom:.7em}
.badge{display:inline-block;border:1.5px solid var(--s1);color:var(--s1);border-radius:4px;padding:0 .5em;font-size:.85rem;font-weight:600;vertical-align:middle}
.skip{position:absolute;left:-99em}.skip:focus{left:8px;top:8px;background:var(--paper);padding:.4em .8em;z-index:1}
:focus-visible{outline:3px solid var(--s0);outline-offset:2px}
nav{margin:1.4em 0}nav a{margin-right:1.2em;display:inline-block;padding:.2em 0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:12px}
figure{margin:0;border:1px solid var(--grid);border-radius:6px;padding:8px 4px;max-width:560px;width:100%}
svg.plot{display:block;width:100%;height:auto}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);padding:.3em 0}
th,td{text-align:right;padding:.3em .7em;border-bottom:1px solid var(--grid);white-space:nowrap;overflow-wrap:normal}
th{font-weight:600;vertical-align:bottom;white-space:normal}
.t{text-align:left;max-width:26em;white-space:normal;min-width:3.2em;overflow-wrap:anywhere}.t:first-child,.t:last-child{min-width:9em}th.t{overflow-wrap:normal}
details{border-top:1px solid var(--grid);padding:.4em 0}summary{cursor:pointer;padding:.3em 0;font-weight:600}
.note{border-left:4px solid var(--s1);padding:.1em 0 .1em .9em;max-width:60em}
p.muted,footer{color:var(--muted);font-size:.9rem}footer{margin-top:3em;padding-bottom:2em}
@media print{nav,.skip{display:none}figure{break-inside:avoid}body{font-size:11pt}.figures{grid-template-columns:1fr 1fr}.scroll{overflow:visible}th,td{padding:.2em .35em;font-size:8pt}}
</style>
</head>
`
}

const table = `{{define "table"}}<div class="scroll" tabindex="0" role="region" aria-label="{{.Caption}}"><table id="table-{{.ID}}">
<caption>{{.Caption}}</caption>
<thead><tr>{{range .Columns}}{{if not .Wide}}<th scope="col"{{if .Text}} class="t"{{end}}>{{.Head}}</th>{{end}}{{end}}</tr></thead>
<tbody>
{{$t := .}}{{range .Rows}}<tr>{{range $i, $c := .}}{{with index $t.Columns $i}}{{if not .Wide}}<td{{if .Text}} class="t"{{end}}>{{if $c.Link}}<a href="{{$c.Link}}">{{$c.Text}}</a>{{else}}{{$c.Text}}{{end}}</td>{{end}}{{end}}{{end}}</tr>
{{end}}</tbody>
</table></div>{{end}}`
