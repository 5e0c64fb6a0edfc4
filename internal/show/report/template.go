package report

import "html/template"

// Mark is in every page, so that a page may be replaced and a file of the user is not.
const Mark = `<meta name="generator" content="fluentps report">`

// The pages hold no script and load nothing: the policy in their head forbids both, whatever a run has written.
const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + Mark + `
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

const table = `{{define "table"}}<div class="scroll" tabindex="0" role="region" aria-label="{{.Caption}}"><table id="table-{{.ID}}">
<caption>{{.Caption}}</caption>
<thead><tr>{{range .Columns}}{{if not .Wide}}<th scope="col"{{if .Text}} class="t"{{end}}>{{.Head}}</th>{{end}}{{end}}</tr></thead>
<tbody>
{{$t := .}}{{range .Rows}}<tr>{{range $i, $c := .}}{{with index $t.Columns $i}}{{if not .Wide}}<td{{if .Text}} class="t"{{end}}>{{if $c.Link}}<a href="{{$c.Link}}">{{$c.Text}}</a>{{else}}{{$c.Text}}{{end}}</td>{{end}}{{end}}{{end}}</tr>
{{end}}</tbody>
</table></div>{{end}}`

const body = `<body>
<a class="skip" href="#figures">Skip to the figures</a>
<header>
<p class="kind">{{.Kind}}</p>
<h1>{{.Title}}{{if .Simulated}} <span class="badge">simulated</span>{{end}}</h1>
<ul class="verdict">{{range .Verdict}}
<li>{{.}}</li>{{end}}
</ul>
<nav aria-label="Parts of this page">{{if .Ranking}}<a href="#comparison">Table</a>{{end}}<a href="#figures">Figures</a><a href="#tables">{{if .Ranking}}More tables{{else}}Table{{end}}</a>{{if .Details}}<a href="#details">Each run</a>{{end}}<a href="#how">How to read it</a></nav>
</header>
<main>
{{range .Damage}}<div class="note" role="note"><p><strong>{{.Folder}}</strong>: this report shows what is there.</p><ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul></div>
{{end}}
{{with .Advice}}<section aria-label="Advice"><h2>Advice</h2><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></section>{{end}}
{{if .Ranking}}<section id="comparison"><h2>{{.RankingTitle}}</h2>
{{template "table" .Ranking}}</section>{{end}}
<section id="figures"><h2>Figures</h2>
<div class="figures">{{range .Figures}}
<figure id="figure-{{.ID}}">{{.SVG}}</figure>{{end}}
</div>
{{range .Untold}}<p class="muted">{{.}}</p>{{end}}
</section>
<section id="tables"><h2>Tables</h2>
{{range .Tables}}{{template "table" .}}
{{end}}</section>
{{with .Details}}<section id="details"><h2>Each run</h2>
{{range .}}<details id="{{.ID}}"><summary>{{.Label}}</summary>
<p class="muted">{{.Folder}}</p>
<p>{{range .Sentences}}{{.}} {{end}}</p>
{{with .Advice}}<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>{{end}}
<div class="figures">{{range .Figures}}
<figure id="figure-{{.ID}}">{{.SVG}}</figure>{{end}}
</div></details>
{{end}}</section>{{end}}
<section id="how"><h2>How to read it</h2>
<details><summary>What the words mean</summary>
<ul>
<li>Wall time counts from the start of the run, setup included. Time to target is the time of the first snapshot whose evaluation reached the target.</li>
<li>A step is an iteration of the run: one push of every worker. With local steps it is one exchange, and holds many steps of a worker.</li>
<li>Staleness is the version at commit minus the version at pull. Lead is how many iterations a worker is ahead of the slowest when it starts one, by the times at which gradients began to leave.{{.Clocks}}</li>
<li>Blocked time by cause is reconstructed from the times of iterations: a blocked worker waited for the worker whose push landed last before it went on, and for servers and wire after that. Where schemes delayed no pull, nobody waited for another worker.</li>
<li>± is the sample deviation over seeds. Two runs are called level if their difference is within their deviations, or 3 %; a run without other seeds is taken to vary as those with several do.</li>
<li>A series is called what its user chose: the settings that differ, the scheme first. One that is first has won if it has several seeds, and if the gap is larger than what evaluations leave open; else it is ahead.</li>
<li>The wire's limit is the least time in which the slowest network card carries the bytes of an iteration.</li>
</ul></details></section>
</main>
<footer>{{with .Build}}Made by fluentps {{.}}. {{end}}This file loads nothing and holds no script.</footer>
</body>
</html>
`

const list = `<body>
<header><p class="kind">{{.Kind}}</p><h1>{{.Title}}</h1></header>
<main>
{{template "table" .Table}}
<p class="muted">A name leads to the report of its run. fluentps report DIR writes one that is missing.</p>
</main>
<footer>{{with .Build}}Made by fluentps {{.}}. {{end}}This file loads nothing and holds no script.</footer>
</body>
</html>
`

var (
	page  = template.Must(template.Must(template.New("page").Parse(table)).Parse(head + body))
	index = template.Must(template.Must(template.New("index").Parse(table)).Parse(head + list))
)
