/** How to tell a wrong method from a sick peer; Markdown. */
export const guide = `Choose one **upstream**. Go through the rows of this page in their order; stop at the first that is red.

| What you see | What it is | What to do |
|---|---|---|
| one peer slow or failing, the others not | a **sick peer** | it should already have lost share; where it has not, see the last line |
| *Waiting* or *In flight* climbs at all peers, \`overflow\` | **queueing**: the group is full | more peers, or fewer requests; no method cures overload |
| *Waiting* climbs at one, its probes pass | a **stuck peer** and a **blind probe** | \`type=backlog\`, or a \`uri\` that does what clients need |
| *Probes failed*, though clients are served well | a **wrong probe** | look at \`/explain/UPSTREAM\` for why it failed |
| *Reused* low, *Connect* high | **no connection reuse** | \`keepalive\`, and how long peers keep idle ones |
| *Failures* and retries | **retries** hide it and cost time | the Attempts dashboard says which reason |
| *Ramp* below 100 %, *Unmeasured* high | **warm-up** | wait, or a longer \`slow_start\` |
| peers unequal by 2 and more, shares equal, nothing else red | a **wrong method** | \`least_time\`; try it first: \`shadow least_time header;\` |
| *Actual* far from *Intended* | not the method: **sticky or hashed** requests, or retries | a hot key stays hot |

Why for one request: \`curl 'ADMIN/explain/UPSTREAM?format=text'\`, and the trace behind a point in the graphs.`
