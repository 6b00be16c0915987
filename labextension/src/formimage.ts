/** Which image a role runs in: the protocol keeps images in a list of their own, and roles name them. */

import { IOperation, Values } from './formapi';

interface IPrerequisite {
  name?: string;
  type?: string;
  uri?: string;
  auth?: Record<string, string>;
}

interface IRole {
  dockerImage?: string;
}

function prerequisites(values: Values): IPrerequisite[] {
  return Array.isArray(values.prerequisites) ? (values.prerequisites as IPrerequisite[]) : [];
}

function roles(values: Values): Record<string, IRole> {
  return (values.taskRoles ?? {}) as Record<string, IRole>;
}

/** Place of a role's image in the list, or -1. */
export function imageIndex(values: Values, role: string): number {
  const name = roles(values)[role]?.dockerImage;
  return prerequisites(values).findIndex(each => each.type === 'dockerimage' && each.name === name);
}

/** Have one role run in an image; roles that share the one it had keep theirs. */
export function settingImage(values: Values, role: string, uri: string | undefined, standard: string): IOperation[] {
  const wanted = uri ?? standard;
  const all = prerequisites(values);
  const index = imageIndex(values, role);
  const name = roles(values)[role]?.dockerImage;
  const sharers = Object.entries(roles(values)).filter(([other, each]) => other !== role && each.dockerImage === name);
  const same = all.find(each => each.type === 'dockerimage' && each.uri === wanted);
  if (same?.name && same.name !== name) {
    return [{ op: 'replace', path: `/taskRoles/${role}/dockerImage`, value: same.name }];
  }
  if (index >= 0 && !sharers.length) {
    return [{ op: 'replace', path: `/prerequisites/${index}/uri`, value: wanted }];
  }
  const taken = new Set(all.map(each => each.name));
  let fresh = all.length ? `image_${role}` : 'image';
  for (let number = 2; taken.has(fresh); number += 1) {
    fresh = `image_${role}_${number}`;
  }
  const made = { protocolVersion: 2, name: fresh, type: 'dockerimage', uri: wanted };
  return [
    all.length
      ? { op: 'add', path: '/prerequisites/-', value: made }
      : { op: 'add', path: '/prerequisites', value: [made] },
    { op: 'replace', path: `/taskRoles/${role}/dockerImage`, value: fresh }
  ];
}

export interface IAuth {
  username: string;
  registryuri: string;
  /** Name of the secret that is the password. */
  secret: string;
}

/** Credentials of an image's registry, as far as they are there. */
export function authOf(values: Values, index: number): IAuth {
  const auth = prerequisites(values)[index]?.auth ?? {};
  const secret = /^\s*<%\s*\$secrets\.(\w+)\s*%>\s*$/.exec(auth.password ?? '')?.[1] ?? '';
  return { username: auth.username ?? '', registryuri: auth.registryuri ?? '', secret };
}

/** Give an image credentials; the password is only ever the name of a secret. None of them: none. */
export function settingAuth(values: Values, index: number, auth: IAuth): IOperation[] {
  const path = `/prerequisites/${index}/auth`;
  if (!auth.username && !auth.registryuri && !auth.secret) {
    return prerequisites(values)[index]?.auth ? [{ op: 'remove', path }] : [];
  }
  const value = {
    ...(auth.username ? { username: auth.username } : {}),
    ...(auth.secret ? { password: `<% $secrets.${auth.secret} %>` } : {}),
    ...(auth.registryuri ? { registryuri: auth.registryuri } : {})
  };
  const named = auth.secret && !Object.prototype.hasOwnProperty.call(values.secrets ?? {}, auth.secret);
  return [
    { op: 'replace', path, value },
    ...(named ? [{ op: 'add' as const, path: `/secrets/${auth.secret}`, value: '' }] : [])
  ];
}
