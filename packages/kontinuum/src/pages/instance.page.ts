/**
 * Instances: the list with the form that adds one, and one machine.
 */
import {
  age,
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
  submitButton,
  table,
} from "@kontinuum/web";
import { annotations, labels, type Instance } from "../kinds/index.ts";
import { listHref, objectHref } from "./addresses.ts";
import { conditionViews } from "./condition-view.ts";
import { frame, type Visit } from "./frame.ts";
import { instanceState } from "./state/state.ts";
import { claimedBy, type World } from "./world.ts";

/** All machines of a namespace. */
export function instancesPage(visit: Visit, world: World): string {
  const href = listHref(visit.namespace, "instances");
  const body =
    world.instances.length === 0
      ? empty({
          title: "No instances yet",
          text: "An instance is a machine that a cluster may be built from: boot it with Talos and add its address.",
          action: linkButton({ href: `${href}/add`, label: "Add instance" }),
        })
      : table<Instance>({
          label: "Instances",
          rows: world.instances,
          rowId: (instance) => `i-${instance.metadata.uid}`,
          isLeaving: (instance) => instance.metadata.deletionTimestamp !== undefined,
          columns: [
            {
              title: "Name",
              isName: true,
              cell: ({ metadata }) =>
                html`<a href="${objectHref(visit.namespace, "instances", metadata.name)}"
                  >${metadata.name}</a
                >`,
            },
            { title: "State", cell: (instance) => status(instanceState(instance)) },
            { title: "Address", cell: ({ spec }) => html`<code>${spec.interfaces?.[0] ?? "-"}</code>` },
            { title: "Talos", priority: 2, cell: (instance) => instance.status?.talos?.version ?? "-" },
            { title: "Claimed by", priority: 2, cell: (instance) => claimedBy(instance) ?? "Unclaimed" },
            {
              title: "Age",
              align: "right",
              cell: ({ metadata }) => age(metadata.creationTimestamp, visit.nowMs),
            },
          ],
        });
  return frame(visit, world, {
    title: "Instances",
    active: href,
    crumbs: [{ label: visit.namespace, href }, { label: "Instances" }],
    liveId: "instances-content",
    body: html`${pageHead({ title: "Instances", verbs: linkButton({ href: `${href}/add`, label: "Add instance", kind: "primary" }) })}${section({ title: "Instances", count: world.instances.length, body })}`,
  });
}

/** The form that registers a machine. */
export function instanceAddPage(visit: Visit, address: string, error?: string): string {
  const href = listHref(visit.namespace, "instances");
  return frame(visit, undefined, {
    title: "Add instance",
    active: href,
    crumbs: [{ label: "Instances", href }, { label: "Add instance" }],
    body: html`${pageHead({ title: "Add instance", sentence: "The machine must have booted Talos and be reachable from here." })}
      ${error ? notice({ tone: "bad", fact: "The instance was not added.", rest: error }) : null}
      <form class="section section-body" method="post" action="${href}/add">
        ${field({ name: "address", label: "Address", value: address, hint: "An IP address or a host name." })}
        ${submitButton({ label: "Add instance" })}
      </form>`,
  });
}

/** One machine. */
export function instancePage(visit: Visit, world: World, instance: Instance): string {
  const { metadata, spec } = instance;
  const links = instance.status?.interfaces ?? [];
  const list = listHref(visit.namespace, "instances");
  const provider = spec.providerRef;
  return frame(visit, world, {
    title: metadata.name,
    active: list,
    crumbs: [{ label: "Instances", href: list }, { label: metadata.name }],
    liveId: "instance-detail-content",
    body: html`${pageHead({
        title: metadata.name,
        chip: statusChip(instanceState(instance)),
        sentence: claimedBy(instance) ? `Claimed by pool ${claimedBy(instance) ?? ""}.` : "Unclaimed.",
      })}
      <div class="cols detail">
        <div class="stack">
          ${section({ title: "Conditions", count: instance.status?.conditions?.length ?? 0, body: conditions(conditionViews(instance.status?.conditions), visit.nowMs) })}
          ${section({
            title: "Interfaces",
            count: links.length,
            body:
              links.length === 0
                ? html`<p class="section-body">Not seen yet.</p>`
                : table<(typeof links)[number]>({
                    label: "Interfaces",
                    rows: links,
                    rowId: (link) => `l-${link.name}`,
                    columns: [
                      { title: "Name", isName: true, cell: (link) => link.name },
                      { title: "MAC", cell: (link) => html`<code>${link.macAddress || "-"}</code>` },
                      {
                        title: "Addresses",
                        cell: (link) => html`<code>${(link.addresses ?? []).join(", ") || "-"}</code>`,
                      },
                    ],
                  }),
          })}
        </div>
        <div class="stack">
          ${section({
            title: "Facts",
            body: facts([
              ["Tenant", visit.namespace],
              ["Talos", instance.status?.talos?.version],
              ["Source", provider ? `${provider.kind}/${provider.name}` : "bare metal"],
              ["Host name", metadata.annotations?.[annotations.hostname]],
              ["Region", metadata.labels?.[labels.region]],
              ["Zone", metadata.labels?.[labels.zone]],
              ["Added", age(metadata.creationTimestamp, visit.nowMs, " ago")],
            ]),
          })}
          ${section({ title: "On the command line", body: html`<div class="section-body">${snippet("instance-cli", `kubectl get instance ${metadata.name} -n ${visit.namespace} -o yaml`)}</div>` })}
        </div>
      </div>`,
  });
}
