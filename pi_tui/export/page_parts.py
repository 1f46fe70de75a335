"""The fixed parts of the exported page: its style, its one small script, and the policy for both.

The policy allows this style, this script and images within the page, and nothing else: whatever
slips into a text could neither run nor fetch anything. The script only filters the outline; the
page is complete without it.
"""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root{color-scheme:light dark;--bg:#fbfaf7;--ink:#23282e;--soft:#535d67;--line:#cdd1d6;
--user:#e8edf3;--tool:#f1f1ee;--bad:#f9eaea;--sum:#efe9f7;--accent:#0b6e66;--add:#2c6e1f;
--del:#b3262b}
@media (prefers-color-scheme:dark){:root{--bg:#16181b;--ink:#d9dde2;--soft:#9aa4ae;--line:#3a4047;
--user:#222b36;--tool:#1f2326;--bad:#37211f;--sum:#292236;--accent:#56c2b6;--add:#8fce7a;
--del:#f08a86}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,sans-serif;
display:grid;grid-template-columns:minmax(14rem,22rem) minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;border-right:1px solid var(--line);
padding:1rem;font-size:.82rem}
nav ol{list-style:none;margin:.5rem 0;padding:0}
nav li{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;color:var(--soft)}
nav li.on{color:var(--ink)}nav li.on::before{content:"\\2022  ";color:var(--accent)}
nav li.leaf{font-weight:600}nav a{color:inherit;text-decoration:none}
nav a:hover,nav a:focus{text-decoration:underline}
nav input{width:100%;font:inherit;padding:.3rem;color:inherit;background:transparent;
border:1px solid var(--line);border-radius:4px}
.d1{padding-left:.8rem}.d2{padding-left:1.6rem}.d3{padding-left:2.4rem}.d4{padding-left:3.2rem}
.d5{padding-left:4rem}.d6{padding-left:4.8rem}.d7{padding-left:5.6rem}.d8{padding-left:6.4rem}
main{padding:1rem 2rem 6rem;max-width:64rem}
header p,footer,.facts,.meta{color:var(--soft);font-size:.82rem}
article{margin:1rem 0;overflow-wrap:anywhere}
article:target,nav li:target{outline:2px solid var(--accent);outline-offset:4px}
.user,.sum,details{border-radius:6px;padding:.5rem .8rem}.user{background:var(--user)}
.sum{background:var(--sum)}details{background:var(--tool)}details.error{background:var(--bad)}
summary{cursor:pointer}.thinking{color:var(--soft);font-style:italic}
.label{border:1px solid var(--accent);color:var(--accent);border-radius:4px;padding:0 .4rem;
font-size:.8rem}
.who{font-size:.75rem;letter-spacing:.04em;text-transform:uppercase;color:var(--soft)}
.notice{color:var(--soft)}.notice.error{color:var(--del)}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,monospace;
margin:.5rem 0}
code{font:.88em ui-monospace,monospace}.add{color:var(--add)}.del{color:var(--del)}
table{border-collapse:collapse}th,td{border:1px solid var(--line);padding:.2rem .6rem}
.al{text-align:left}.ac{text-align:center}.ar{text-align:right}
blockquote{margin:.5rem 0;padding-left:1rem;border-left:3px solid var(--line)}
img{max-width:100%;height:auto}a{color:var(--accent)}
section.branch{border-top:1px solid var(--line);margin-top:3rem}
@media (max-width:50rem){body{display:block}nav{position:static;height:auto;max-height:40vh;
border-right:0;border-bottom:1px solid var(--line)}main{padding:1rem}}
@media print{nav{display:none}body{display:block}}
"""

SCRIPT = """
"use strict";
(function () {
  var list = document.querySelector("nav ol");
  if (!list) { return; }
  var box = document.createElement("input");
  box.type = "search";
  box.placeholder = "filter";
  box.setAttribute("aria-label", "filter the outline");
  list.parentNode.insertBefore(box, list);
  box.addEventListener("input", function () {
    var words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
    Array.prototype.forEach.call(list.children, function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
    });
  });
}());
"""


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
