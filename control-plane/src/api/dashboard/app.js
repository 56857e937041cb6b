// The page: what the service says, as text. Names come from callers, so nothing here is ever parsed as markup.

import { Chart } from "./chart.js";
import { Refused, ask, follow, onToken } from "./service.js";

const VERDICTS = [
  { key: "allowed", label: "allowed" },
  { key: "over_limit", label: "over limit" },
  { key: "never", label: "never (over the capacity)" },
  { key: "banned", label: "banned" },
  { key: "failed", label: "failed (no decision)" },
];
const TOP_EVERY_MS = 5000;
const WINDOW_S = 900;

const $ = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en-GB");
const clock = (date) => new Date(date).toLocaleTimeString("en-GB");

let seconds = [];
let uptime = null;
let policiesVersion = null;
let topTurn = 0;

/** An element with text or elements in it. */
function el(name, attributes, ...children) {
  const element = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => { element[key] = value; });
  element.append(...children);
  return element;
}

function show(element, text) {
  element.textContent = text;
  element.hidden = !text;
}

// Live

function live(isLive, why = "") {
  $("live").textContent = isLive ? "live" : "not live";
  $("live").dataset.state = isLive ? "on" : "off";
  $("live").title = why;
}

function start({ uptime_s, state, seconds: series }) {
  const second = (_, index) => ({
    unix_s: series.first_unix_s + index,
    checks: Object.fromEntries(VERDICTS.map(({ key }) => [key, series[key][index]])),
  });
  seconds = series.allowed.map(second);
  showUptime(uptime_s);
  showState(state);
  showSeconds();
  showTop();
  live(true);
}

function event(name, data) {
  if (name === "state") showState(data);
  if (name !== "second") return;
  showUptime(data.uptime_s);
  const last = seconds.at(-1)?.unix_s ?? 0;
  if (data.unix_s <= last) return;
  // What the service skipped had none: it stood still, and what came since is in the one that is told.
  for (let missed = Math.max(last + 1, data.unix_s - WINDOW_S); last && missed < data.unix_s; missed++) {
    seconds.push({ unix_s: missed, checks: Object.fromEntries(VERDICTS.map(({ key }) => [key, 0])) });
  }
  seconds.push(data);
  seconds = seconds.slice(-WINDOW_S);
  showSeconds();
}

// Health

function showUptime(seconds) {
  uptime = seconds;
  $("uptime").textContent = `up ${duration(uptime * 1000)}`;
}

function showState(state) {
  $("version").textContent = `version ${state.version}`;
  $("ready").className = `fact state ${state.ready ? "" : "bad"}`;
  $("ready").textContent = state.ready ? "ready" : "not ready";
  show($("ready-reason"), state.reason);
  showServers(state.servers);
  showReload(state);
  showPolicies(state);
  if (state.policies_version !== policiesVersion) {
    policiesVersion = state.policies_version;
    listPolicies();
  }
}

function showServers(servers) {
  const row = ({ address, ready, reason, up, joining, silent, down }) => {
    const counts = Object.entries({ up, joining, silent, down }).filter(([name, count]) => count || name === "up");
    const detail = reason ?? `connections: ${counts.map(([name, count]) => `${count} ${name}`).join(", ")}`;
    return el("li", {}, el("p", { className: `fact state ${ready ? "" : "bad"}` }, address),
      el("p", { className: `detail ${ready ? "" : "bad"}` }, detail));
  };
  const memory = el("li", {}, el("p", { className: "fact state" }, "memory"),
    el("p", { className: "detail" }, "limits are kept in the service's own process"));
  $("servers").replaceChildren(...(servers.length ? servers.map(row) : [memory]));
}

function showReload({ policies_version, reload }) {
  const failed = reload.last_error !== null;
  $("reload").className = `fact state ${failed ? "bad" : ""}`;
  $("reload").textContent = failed
    ? `refused at ${clock(reload.last_attempt_at)}; the policies before it are in use`
    : `good, read at ${clock(reload.last_attempt_at)}`;
  const since = new Date(reload.loaded_at).toLocaleString("en-GB");
  $("reload-version").textContent = `policies ${policies_version.slice(0, 12)}, in use since ${since}`;
  $("reload-version").title = policies_version;
  show($("reload-error"), reload.last_error);
  const waiting = reload.needs_restart;
  show($("needs-restart"), waiting.length ? `waits for a restart: ${waiting.join(", ")}` : "");
}

// Decisions

const chart = new Chart($("chart"), VERDICTS, (second) => {
  const counts = second && VERDICTS.filter(({ key }) => second.checks[key]);
  const text = counts?.map(({ key, label }) => `${number(second.checks[key])} ${label.split(" (")[0]}`).join(", ");
  $("readout").textContent = second ? `${clock(second.unix_s * 1000)}: ${text || "none"}` : "by verdict, the last 15 minutes";
});
$("readout").textContent = "by verdict, the last 15 minutes";

function showSeconds() {
  chart.draw(seconds);
  const sum = (key) => seconds.reduce((total, { checks }) => total + checks[key], 0);
  const entries = VERDICTS.map((verdict) => ({ ...verdict, total: sum(verdict.key) }));
  $("legend").replaceChildren(...entries.map(({ key, label, total }) =>
    el("li", {}, el("span", { className: `swatch ${key}` }), `${label} `, el("b", {}, number(total)))));
}

// Policies

function showPolicies({ policies, policies_left_out }) {
  const row = ({ policy, checks, p99_ms }) => {
    const denied = checks.over_limit + checks.never + checks.banned;
    const parts = `over limit ${number(checks.over_limit)}, never ${number(checks.never)}, banned ${number(checks.banned)}`;
    const cell = (value, className = "") => el("td", { className: value ? className : "none" }, number(value));
    return el("tr", {}, el("th", { scope: "row" }, policy), cell(checks.allowed),
      Object.assign(cell(denied), { title: parts }), cell(checks.failed, "some"),
      el("td", { className: p99_ms === null ? "none" : "" }, p99_ms === null ? "–" : milliseconds(p99_ms)));
  };
  $("policies").tBodies[0].replaceChildren(...policies.map(row));
  show($("left-out"), policies_left_out ? `and ${number(policies_left_out)} more with fewer checks` : "");
}

async function listPolicies() {
  const { policies } = await ask("v1/policies").catch(() => ({ policies: [] }));
  for (const select of [$("top-policy"), $("find-policy")]) {
    const chosen = select.value;
    select.replaceChildren(...policies.map(({ name }) => el("option", { value: name }, name)));
    if (policies.some(({ name }) => name === chosen)) select.value = chosen;
  }
  showTop();
}

// Subjects

async function showTop() {
  const turn = ++topTurn;
  const policy = $("top-policy").value;
  if (!policy) return;
  const query = new URLSearchParams({ policy, by: $("top-by").value, n: 10 });
  const answer = await ask(`v1/top?${query}`).catch(() => null);
  // A later question was asked in the meantime, or there is no answer; "not live" says so.
  if (turn !== topTurn || !answer) return;
  const { subjects, window_ms } = answer.policies[0];
  $("top-window").textContent = `of this replica, the last ${duration(window_ms)}`;
  const focused = document.activeElement?.dataset?.button;
  $("top").tBodies[0].replaceChildren(...subjects.map((ranked) => topRow(policy, ranked)));
  $("top-none").hidden = subjects.length > 0;
  // A row that is drawn anew must not take the keyboard's place away.
  if (focused) [...$("top").querySelectorAll("button")].find(({ dataset }) => dataset.button === focused)?.focus();
}

function topRow(policy, { subject, count, error }) {
  const target = { policy, key: { encoded: subject } };
  const button = (text, act) => {
    const made = el("button", { type: "button", className: text.toLowerCase(), onclick: () => act(target), ariaLabel: `${text} ${readable(subject).join(" ")}` }, text);
    made.dataset.button = `${text} ${policy} ${subject}`;
    return made;
  };
  const accuracy = error ? `at most; up to ${number(error)} fewer` : "";
  return el("tr", {}, el("td", {}, subjectText(subject)), el("td", { title: accuracy }, `${error ? "≤ " : ""}${number(count)}`),
    el("td", {}, button("Peek", (target) => peek(target)), " ", button("Reset", reset)));
}

/** The parts of a subject as they were sent; digests stay as they are. */
function readable(subject) {
  return subject.split("+").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
}

function subjectText(subject) {
  const parts = readable(subject).flatMap((part, index) => [...(index ? [el("i", {}, "+")] : []), part]);
  return el("span", { className: "subject", title: subject }, ...parts);
}

async function peek(target, note) {
  $("find-policy").value = target.policy;
  try {
    showFound(target, await ask("v1/peek", target), note);
  } catch (error) {
    complain(error);
  }
}

async function reset(target) {
  if (!(await confirmed(target))) return;
  try {
    const { removed } = await ask("v1/reset", target);
    await peek(target, removed ? `Reset: ${number(removed)} key${removed === 1 ? "" : "s"} removed.` : "Reset: there was nothing to remove.");
  } catch (error) {
    complain(error);
  }
}

function complain(error) {
  const why = error instanceof Refused ? error.message : `no answer from the service: ${error.message}`;
  $("found").replaceChildren(el("p", { className: "bad" }, why));
}

function showFound(target, { policy, subject, limits, ban, override }, note) {
  const row = ({ limit, capacity, remaining, full_ms }) =>
    el("tr", {}, el("th", { scope: "row" }, limit), el("td", {}, `${number(remaining)} of ${number(capacity)}`),
      el("td", {}, el("meter", { max: Math.max(capacity, 1), value: remaining, ariaLabel: `${limit}: left` })),
      el("td", {}, full_ms ? duration(full_ms) : "full"));
  const head = ["Limit", "Left", "", "Full in"].map((text) => el("th", { scope: "col" }, text));
  const facts = [];
  if (ban) facts.push(ban.banned ? `banned for another ${duration(ban.left_ms)}` : `not banned; ${number(ban.denials)} of ${number(ban.after)} denials counted`);
  if (override) facts.push("has numbers of its own");
  $("found").replaceChildren(
    ...(note ? [el("p", { id: "note" }, note)] : []),
    el("p", { className: "whom" }, `${policy}: `, subjectText(subject)),
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...limits.map(row))),
    ...facts.map((fact) => el("p", { className: "detail" }, fact)),
    el("div", { className: "buttons" }, el("button", { type: "button", className: "danger", onclick: () => reset(target) }, "Reset …")),
  );
}

function key(text) {
  if (!text.startsWith("[")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// Dialogs

function closed(dialog) {
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

async function confirmed({ policy, key }) {
  const whom = key.encoded ? subjectText(key.encoded) : [key].flat().join(" + ");
  $("ask-reset-whom").replaceChildren(`${policy}: `, whom);
  $("ask-reset").returnValue = "cancel";
  return (await closed($("ask-reset"))) === "reset";
}

async function token(wasWrong) {
  live(false, "a token is needed");
  if (wasWrong) $("ask-token-why").textContent = "The token is not one that is allowed here.";
  const input = $("token");
  do {
    input.value = "";
    await closed($("ask-token"));
  } while (!input.value);
  const given = input.value;
  input.value = "";
  return given;
}

// Text

function duration(ms) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const whole = Math.ceil(ms / 1000);
  const first = units.findIndex(([size]) => whole >= size);
  if (first < 0) return "0 s";
  const [[size, unit], next] = [units[first], units[first + 1]];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${next[1]}` : ""}`;
}

function milliseconds(ms) {
  return `${ms.toLocaleString("en-GB", { maximumSignificantDigits: 3 })} ms`;
}

// Start

onToken(token);
$("top-policy").addEventListener("change", showTop);
$("top-by").addEventListener("change", showTop);
$("find").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  peek({ policy: $("find-policy").value, key: key($("find-subject").value.trim()) });
});
setInterval(showTop, TOP_EVERY_MS);
follow({ start, event, broken: (why) => live(false, why) });
