/**
 * Zones: the list, one zone with its path to Ready, and the forms that add and remove one.
 */
import {
  age,
  code,
  conditions,
  empty,
  facts,
  field,
  html,
  linkButton,
  notice,
  pageHead,
  section,
  snippet,
  status,
  statusChip,
  steps,
  submitButton,
  table,
  type Content,
  type StepView,
} from "@kontinuum/web";
import type { Addon, Instance, Zone } from "../kinds/index.ts";
import { listHref, objectHref } from "./addresses.ts";
import { clusterWord, frame, zoneWord, type Visit } from "./frame.ts";
import { lookup, newest } from "./state/condition-lookup.ts";
import { conditionViews } from "./condition-view.ts";
import { addonState, instanceState } from "./state/state.ts";
import { membersOf, poolsOf, processOf, type World } from "./world.ts";

/** All zones of a namespace. */
export function zonesPage(visit: Visit, world: World): string {
  const active = listHref(visit.namespace, "zones");
  const body =
    world.zones.length === 0
      ? empty({
          title: "No zones yet",
          text: "A zone is one site with its own cluster. Adding one needs a machine that has booted Talos, or a provider that can create it.",
          action: linkButton({ href: "/app/zones/add", label: "Add zone" }),
        })
      : table<Zone>({
          label: "Zones",
          rows: world.zones,
          rowId: (zone) => `z-${zone.metadata.uid}`,
          isLeaving: (zone) => zone.metadata.deletionTimestamp !== undefined,
          columns: [
            {
              title: "Name",
              isName: true,
              cell: (zone) =>
                html`<a href="${objectHref(visit.namespace, "zones", zone.metadata.name)}"
                  >${zone.metadata.name}</a
                >`,
            },
            { title: "State", cell: (zone) => status(zoneWord(world, zone, visit.nowMs)) },
            { title: "Region", cell: (zone) => zone.spec.region },
            { title: "Zone", cell: (zone) => zone.spec.zone },
            { title: "Domain", priority: 3, cell: (zone) => zone.spec.domain || "-" },
            {
              title: "Message",
              priority: 2,
              cell: (zone) => newest(zone.status?.conditions)?.message ?? "-",
            },
            {
              title: "Age",
              align: "right",
              cell: (zone) => age(zone.metadata.creationTimestamp, visit.nowMs),
            },
          ],
        });
  return frame(visit, world, {
    title: "Zones",
    active,
    crumbs: [{ label: visit.namespace, href: listHref(visit.namespace, "instances") }, { label: "Zones" }],
    liveId: "zones-content",
    body: html`${pageHead({
      title: "Zones",
      verbs: linkButton({ href: "/app/zones/add", label: "Add zone", kind: "primary" }),
    })}${section({ title: "Zones", count: world.zones.length, body })}`,
  });
}

function zoneSteps(world: World, zone: Zone): StepView[] {
  const on = lookup(zone.status?.conditions);
  const step = (title: string, type: string, done: string): StepView => {
    const condition = on.of(type);
    if (condition?.status === "True") return { title, tone: "ok", detail: done };
    if (!condition) return { title, tone: "off", detail: "to do" };
    const failed = /Failed|NotFound|Refused|NoStorage/.test(condition.reason);
    return { title, tone: failed ? "bad" : "wait", detail: condition.message || condition.reason };
  };
  const process = processOf(world, zone);
  return [
    step("Cluster ready", "ClusterReady", zone.metadata.name),
    step("Installed", "Installed", on.of("Installed")?.message ?? ""),
    step("Joined", "RegistryJoined", process ? `as ${process.metadata.name}` : "registered"),
    step("Ready", "Ready", "all conditions true"),
  ];
}

function machineTable(
  visit: Visit,
  world: World,
  members: readonly { role: string; machine: Instance }[],
): Content {
  if (members.length === 0) return html`<p class="section-body">No machine is claimed yet.</p>`;
  return table<{ role: string; machine: Instance }>({
    label: "Machines",
    rows: members,
    rowId: ({ machine }) => `m-${machine.metadata.uid}`,
    isLeaving: ({ machine }) => machine.metadata.deletionTimestamp !== undefined,
    columns: [
      {
        title: "Name",
        isName: true,
        cell: ({ machine }) =>
          html`<a href="${objectHref(world.namespace, "instances", machine.metadata.name)}"
            >${machine.metadata.name}</a
          >`,
      },
      { title: "State", cell: ({ machine }) => status(instanceState(machine)) },
      { title: "Role", cell: ({ role }) => role },
      {
        title: "Address",
        priority: 2,
        cell: ({ machine }) => html`<code>${machine.spec.interfaces?.[0] ?? "-"}</code>`,
      },
      { title: "From", priority: 3, cell: ({ machine }) => machine.spec.providerRef?.kind ?? "Bare metal" },
      { title: "Talos", align: "right", cell: ({ machine }) => machine.status?.talos?.version ?? "-" },
    ],
  });
}

/** The machines of a cluster with their roles. */
export function clusterMembers(world: World, name: string): { role: string; machine: Instance }[] {
  const cluster = world.clusters.find((item) => item.metadata.name === name);
  if (!cluster) return [];
  return poolsOf(cluster).flatMap(({ role, pool }) =>
    membersOf(world, pool).map((machine) => ({ role, machine })),
  );
}

/** Sections that a zone and its cluster share: machines and addons. */
export function clusterSections(visit: Visit, world: World, name: string): Content {
  const members = clusterMembers(world, name);
  const addons = world.addons.filter((addon) => addon.spec.talosClusterRef.name === name);
  return html`${section({ title: "Machines", count: members.length, body: machineTable(visit, world, members) })}${section(
    {
      title: "Addons",
      count: addons.length,
      body:
        addons.length === 0
          ? html`<p class="section-body">Addons are made when the cluster has a control plane.</p>`
          : table<Addon>({
              label: "Addons",
              rows: addons,
              rowId: (addon) => `d-${addon.metadata.uid}`,
              columns: [
                {
                  title: "Name",
                  isName: true,
                  cell: (addon) => addon.spec.releaseName ?? addon.metadata.name,
                },
                { title: "State", cell: (addon) => status(addonState(addon, visit.nowMs)) },
                {
                  title: "Message",
                  priority: 2,
                  cell: (addon) => newest(addon.status?.conditions)?.message ?? "-",
                },
                { title: "Wave", align: "right", cell: (addon) => addon.spec.lifecycle?.priority ?? 100 },
              ],
            }),
    },
  )}`;
}

/** One zone. */
export function zonePage(visit: Visit, world: World, zone: Zone): string {
  const name = zone.metadata.name;
  const word = zoneWord(world, zone, visit.nowMs);
  const cluster = world.clusters.find((item) => item.metadata.name === name);
  const process = processOf(world, zone);
  const waiting = zone.status?.conditions?.find((condition) => condition.status === "False");
  const host = zone.spec.domain ? `${zone.spec.zone}.${zone.spec.region}.${zone.spec.domain}` : undefined;
  return frame(visit, world, {
    title: name,
    active: listHref(visit.namespace, "zones"),
    crumbs: [
      { label: "Zones", href: listHref(visit.namespace, "zones") },
      { label: zone.spec.region },
      { label: zone.spec.zone },
    ],
    liveId: "zone-detail-content",
    body: html`${pageHead({
        title: name,
        chip: statusChip(word),
        sentence: html`Zone in region ${zone.spec.region}.
        ${host ? html`<a href="https://${host}">${host}</a>` : "Not exposed: it has no domain."}`,
        verbs: html`${linkButton({ href: "/app/connect", label: "Connect" })}${linkButton({ href: `${objectHref(visit.namespace, "zones", name)}/remove`, label: "Remove zone", kind: "danger" })}`,
      })}
      ${steps(zoneSteps(world, zone))}
      ${
        waiting
          ? notice({
              tone: word.tone === "bad" ? "bad" : "wait",
              fact: `${waiting.type}: ${waiting.reason}.`,
              rest: waiting.message,
            })
          : null
      }
      <div class="cols detail">
        <div class="stack">${clusterSections(visit, world, name)}</div>
        <div class="stack">
          ${section({
            title: "Facts",
            body: facts([
              [
                "Cluster",
                cluster
                  ? html`<a href="${objectHref(visit.namespace, "talosclusters", name)}">${name}</a>`
                  : "not made yet",
              ],
              ["State", cluster ? status(clusterWord(world, cluster, visit.nowMs)) : "-"],
              ["Process", process ? process.metadata.name : "not joined yet"],
              ["Heartbeat", age(process?.status?.lastHeartbeatTime, visit.nowMs, " ago")],
              ["Version", process?.status?.version],
              ["Kubernetes", cluster?.spec.kubernetes?.version ?? "default"],
              ["Talos", cluster?.spec.talos?.version ?? "default"],
              ["Added", age(zone.metadata.creationTimestamp, visit.nowMs, " ago")],
            ]),
          })}${section({ title: "Conditions", body: conditions(conditionViews(zone.status?.conditions), visit.nowMs) })}
        </div>
      </div>`,
  });
}

/** What was typed into the form, and what is wrong with it. */
export interface ZoneForm {
  readonly values: Readonly<Record<string, string>>;
  /** On top of the form. */
  readonly error?: string;
}

/** The form that adds a zone, as a page. */
export function zoneAddPage(visit: Visit, world: World, form: ZoneForm): string {
  const free = world.instances.filter((instance) => instanceState(instance).tone === "free");
  const value = (name: string): { value?: string } => {
    const typed = form.values[name];
    return typed === undefined ? {} : { value: typed };
  };
  return frame(visit, world, {
    title: "Add zone",
    active: listHref(visit.namespace, "zones"),
    crumbs: [{ label: "Zones", href: listHref(visit.namespace, "zones") }, { label: "Add zone" }],
    body: html`${pageHead({ title: "Add zone", sentence: "A zone is one site with its own cluster, built from machines that have booted Talos." })}
      ${form.error ? notice({ tone: "bad", fact: "The zone was not added.", rest: form.error }) : null}
      <form class="section section-body" method="post" action="/app/zones/add">
        ${field({ name: "region", label: "Region", placeholder: "eu", hint: "Lower case, digits and dashes, up to 63.", ...value("region") })}
        ${field({ name: "zone", label: "Zone", placeholder: "hel01", ...value("zone") })}
        ${field({
          name: "talos-address",
          label: "Talos address",
          hint:
            free.length === 0
              ? "Address or host name of a machine that has booted Talos."
              : "An unclaimed machine, or the address of a new one.",
          suggestions: free.flatMap((instance) => instance.spec.interfaces?.slice(0, 1) ?? []),
          ...value("talos-address"),
        })}
        ${field({ name: "domain", label: "Domain", optional: true, hint: "Without one the zone is not exposed.", ...value("domain") })}
        ${field({ name: "talos-version", label: "Talos version", optional: true, placeholder: "default", ...value("talos-version") })}
        ${field({ name: "kubernetes-version", label: "Kubernetes version", optional: true, placeholder: "default", ...value("kubernetes-version") })}
        ${submitButton({ label: "Add zone" })}
      </form>
      ${section({
        title: "The same on the command line",
        body: html`<div class="section-body">
          ${snippet("zone-add-cli", "kontinuum zone add --region REGION --zone ZONE --talos-address ADDRESS --wait")}
        </div>`,
      })}`,
  });
}

/** The plan of a removal: what goes, and the name to type. */
export function zoneRemovePage(visit: Visit, world: World, zone: Zone, form: ZoneForm): string {
  const name = zone.metadata.name;
  const members = clusterMembers(world, name);
  const machines = `${members.length} ${members.length === 1 ? "machine" : "machines"}`;
  const first = members.slice(0, 3).map(({ machine }) => machine.metadata.name);
  const more = members.length > 3 ? ` and ${members.length - 3} more` : "";
  return frame(visit, world, {
    title: `Remove ${name}`,
    active: listHref(visit.namespace, "zones"),
    crumbs: [
      { label: "Zones", href: listHref(visit.namespace, "zones") },
      { label: name, href: objectHref(visit.namespace, "zones", name) },
      { label: "Remove" },
    ],
    body: html`${pageHead({ title: `Remove zone ${name}?`, sentence: `${machines} lose their data. This can't be undone.` })}
      ${form.error ? notice({ tone: "bad", fact: "The zone was not removed.", rest: form.error }) : null}
      ${section({
        title: "Plan",
        body: code(
          [
            `− Zone ${name}: its server and its identity`,
            `− Cluster ${name} and its addons`,
            `~ ${machines} reset to maintenance mode${first.length > 0 ? `: ${first.join(", ")}${more}` : ""}`,
            `= The machines stay registered and may be claimed again`,
          ].join("\n"),
        ),
      })}
      <form
        class="section section-body"
        method="post"
        action="${objectHref(visit.namespace, "zones", name)}/remove"
      >
        ${field({ name: "confirm", label: `Type ${name} to confirm` })}
        <div class="page-verbs">
          ${linkButton({ href: objectHref(visit.namespace, "zones", name), label: "Keep zone" })}${submitButton({ label: `Remove zone, reset ${machines}`, kind: "danger-fill" })}
        </div>
      </form>
      ${section({ title: "The same on the command line", body: html`<div class="section-body">${snippet("zone-remove-cli", `kubectl delete zone ${name} -n ${visit.namespace}`)}</div>` })}`,
  });
}
